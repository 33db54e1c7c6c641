import { useMatch } from '@tanstack/react-router'

/** The page shown, as in `#/receipts/rcpt_1?kind=run`. It lives in the URL, so that it can be bookmarked and shared. */
export type Route = { page: string; segments: string[]; query: URLSearchParams }

export function parseRoute(address: string): Route {
  const [path = '', search = ''] = address.replace(/^#?\/?/, '').split('?')
  const [page = '', ...segments] = path.split('/').map(decode)
  return { page, segments: segments.filter((segment) => segment !== ''), query: new URLSearchParams(search) }
}

export function routeHref(segments: string[], query: Record<string, string | undefined> = {}): string {
  const nonEmpty = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const search = new URLSearchParams(nonEmpty)
  return `#/${segments.map(encodeURIComponent).join('/')}${search.size > 0 ? `?${search}` : ''}`
}

export const navigate = (href: string) => {
  location.hash = href
}

/** The address of the page that asks, also while the next one is still loading. */
export function useRoute(): Route {
  return parseRoute(useMatch({ strict: false, select: ({ context }) => (context as { href: string }).href }))
}

/** A URL typed by hand may contain an incomplete escape; it is then kept as it is. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
