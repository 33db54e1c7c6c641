import { Component, type ReactNode } from 'react'
import { Card, PageTitle } from './ui.tsx'

/** One page that fails does not take the navigation with it. Give it the address as `key`, so that the next page starts anew. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined }

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    return (
      <>
        <PageTitle>This page failed</PageTitle>
        <Card title="What happened">
          <p className="error" role="alert">
            {error.message}
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
  }
}
