import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { type Domain, fromApproval, fromTrade, type InboxItem, isTradeId, type Status } from './inbox-item.ts'

export type InboxFilter = { status: Status | 'all'; domain: Domain | 'all'; spender: string | undefined }

export const statuses = ['pending', 'approved', 'rejected', 'all'] as const
export const domains = ['core', 'brokerage'] as const

/** The filters of the address; what is not one of the choices counts as none. */
export const toInboxFilter = (query: URLSearchParams): InboxFilter => ({
  status: statuses.find((status) => status === query.get('status')) ?? 'pending',
  domain: domains.find((domain) => domain === query.get('domain')) ?? 'all',
  spender: query.get('spender')?.trim() || undefined,
})

/** Where each list goes on; null when it has ended or is not read. */
type Cursors = Record<Domain, string | undefined | null>
type Page = { items: InboxItem[]; next: Cursors }

const PENDING_PAGE = 100
const HISTORY_PAGE = 20

async function readPage({ status, spender }: InboxFilter, cursors: Cursors): Promise<Page> {
  const limit = status === 'pending' ? PENDING_PAGE : HISTORY_PAGE
  const query = <Cursor>(cursor: Cursor) => ({ limit, spender, ...(cursor && { cursor }) })
  const [core, brokerage] = await Promise.all([
    cursors.core === null ? null : api.get('/api/approvals', { query: { status, ...query(cursors.core) } }),
    cursors.brokerage === null
      ? null
      : api.get('/api/rh/runs', { query: { approval: status, ...query(cursors.brokerage) } }),
  ])
  return {
    items: [...(core?.approvals.map(fromApproval) ?? []), ...(brokerage?.runs.map(fromTrade) ?? [])],
    next: { core: core?.next_cursor ?? null, brokerage: brokerage?.next_cursor ?? null },
  }
}

export function useInbox(filter: InboxFilter) {
  const first: Cursors = {
    core: filter.domain === 'brokerage' ? null : undefined,
    brokerage: filter.domain === 'core' ? null : undefined,
  }
  return useInfiniteQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', 'inbox', filter],
    queryFn: ({ pageParam }) => readPage(filter, pageParam),
    initialPageParam: first,
    getNextPageParam: ({ next }) => (next.core === null && next.brokerage === null ? undefined : next),
    select: ({ pages }) => ({ items: orderItems(pages, filter.status) }),
  })
}

/** What expires first stands first; what is decided, newest first and without what a list not yet read could come before. */
export function orderItems(pages: readonly Page[], status: InboxFilter['status']): InboxItem[] {
  const items = pages.flatMap((page) => page.items)
  if (status === 'pending') return items.toSorted((a, b) => compare(a.expiresAt ?? '', b.expiresAt ?? ''))
  const next = pages.at(-1)?.next
  const oldestRead = (domain: Domain) =>
    next?.[domain] ? (items.findLast((item) => item.domain === domain)?.createdAt ?? '') : ''
  const readUntil = [oldestRead('core'), oldestRead('brokerage')].toSorted(compare)[1]!
  return items.filter(({ createdAt }) => createdAt >= readUntil).toSorted((a, b) => compare(b.createdAt, a.createdAt))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** One approval of the core or one trade, whichever the id is of. */
export const useInboxItem = (id: string | undefined) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', 'item', id],
    queryFn: async () =>
      isTradeId(id!)
        ? fromTrade(await api.get('/api/rh/runs/{id}', { path: { id: id! } }))
        : fromApproval(await api.get('/api/approvals/{id}', { path: { id: id! } })),
    enabled: id !== undefined,
    refetchInterval: 5_000,
  })
