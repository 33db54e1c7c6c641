import { useSyncExternalStore } from 'react'

/** Where the reader is: `#/receipts/rcpt_1?kind=run`. It stands in the address, so that it can be kept and sent. */
export type Route = { page: string; rest: string[]; query: URLSearchParams }

export function readRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?')
  const [page = '', ...rest] = path.split('/').map(decode)
  return { page, rest: rest.filter((part) => part !== ''), query: new URLSearchParams(search) }
}

export function link(parts: string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const search = new URLSearchParams(given)
  return `#/${parts.map(encodeURIComponent).join('/')}${search.size > 0 ? `?${search}` : ''}`
}

export const go = (href: string) => {
  location.hash = href
}

export const useHash = () =>
  useSyncExternalStore(
    (changed) => {
      addEventListener('hashchange', changed)
      return () => removeEventListener('hashchange', changed)
    },
    () => location.hash,
  )

export const useRoute = (): Route => readRoute(useHash())

/** An address typed by hand may hold half an escape; then it is what it is. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
