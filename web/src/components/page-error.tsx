import { Card, PageTitle } from './ui.tsx'

/** In place of a page that failed; the navigation and the other pages go on. */
export const PageError = ({ error }: { error: unknown }) => (
  <>
    <PageTitle>This page failed</PageTitle>
    <Card title="What happened">
      <p className="error" role="alert">
        {error instanceof Error ? error.message : String(error)}
      </p>
      <p>
        Nothing was sent because of this. Load the page again; the other pages still work. After an update of the
        service an open page may miss a file, and loading it again is enough.
      </p>
      <button type="button" onClick={() => location.reload()}>
        Load again
      </button>
    </Card>
  </>
)
