import { Id } from '../components/ui.tsx'
import { routeHref } from '../route.ts'

/** The page of what an entry is about; text without a page stays text. */
export function RefLink({ value }: { value: string }) {
  const href = hrefOf(value)
  return href === undefined ? (
    <Id value={value} />
  ) : (
    <a href={href}>
      <Id value={value} />
    </a>
  )
}

function hrefOf(value: string): string | undefined {
  if (value.startsWith('run_')) return routeHref(['account', 'runs', value])
  if (value.startsWith('esc_')) return routeHref(['account', 'escrow', value])
  if (value.startsWith('wal_')) return routeHref(['account', 'wallets', value])
  if (value.startsWith('stl_')) return routeHref(['account', 'settlements', value])
  return undefined
}

/** Where room is short: the last characters, which tell ids apart, and the whole id on hover. */
export const ShortId = ({ value }: { value: string }) => <code title={value}>…{value.slice(-8)}</code>

export const walletAccount = (walletId: string) => `liabilities:wallet:${walletId}`
