import { useLocation } from '@tanstack/react-router'
import { routeHref } from '../route.ts'
import { Card, Id, PageTitle } from './ui.tsx'

export function NotFoundPage() {
  const address = useLocation({ select: ({ pathname }) => pathname.replace(/^\//, '') })
  return (
    <>
      <PageTitle>Page not found</PageTitle>
      <Card title="Unknown address">
        <p>
          There is no page <Id value={address} full />. A link may be cut off or out of date.
        </p>
        <p>
          Go to the <a href={routeHref(['start'])}>start page</a>, look up a{' '}
          <a href={routeHref(['receipts'])}>public receipt</a>, or read the <a href="/docs">documentation</a>.
        </p>
      </Card>
    </>
  )
}
