import { routeHref } from '../route.ts'
import { Card, Id, PageTitle } from './ui.tsx'

export const NotFoundPage = ({ address }: { address: string }) => (
  <>
    <PageTitle>Page not found</PageTitle>
    <NotFoundCard address={address} />
  </>
)

export const NotFoundCard = ({ address }: { address: string }) => (
  <Card title="Unknown address">
    <p>
      There is no page <Id value={address} full />. A link may be cut off or out of date.
    </p>
    <p>
      Go to the <a href={routeHref(['start'])}>start page</a>, look up a{' '}
      <a href={routeHref(['receipts'])}>public receipt</a>, or read the <a href="/docs">documentation</a>.
    </p>
  </Card>
)
