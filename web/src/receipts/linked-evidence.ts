import { useQuery } from '@tanstack/react-query'
import { api } from '../api.ts'
import type { Route } from '../route.ts'

/** Loads the evidence named in the URL: `#/verify?receipt=…`, `?run=…` or `?attestation=…`. */
export function useLinkedEvidence({ query }: Route) {
  const receipt = query.get('receipt')
  const run = query.get('run')
  const symbol = query.get('attestation')
  const chain = query.get('chain') ?? undefined
  const name = receipt ?? run ?? symbol ?? ''
  const fetchEvidence = async () => {
    if (receipt) return api.get('/api/receipts/{id}', { path: { id: receipt } })
    if (symbol) return api.get('/api/basis/v1/attestation/{symbol}', { path: { symbol }, query: { chain } })
    const { receipts } = await api.get('/api/receipts', { query: { run_id: run!, limit: 100 } })
    if (receipts.length === 0) throw new Error(`There is no receipt of the run ${run}.`)
    return receipts
  }
  const evidence = useQuery({
    queryKey: ['evidence', receipt, run, symbol, chain],
    enabled: name !== '',
    refetchInterval: false,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => JSON.stringify(await fetchEvidence(), null, 2),
  })
  return { name, text: evidence.data, error: evidence.error }
}
