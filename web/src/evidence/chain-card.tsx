import { verifyAuditExport } from '@countersign/proof'
import { useMutation } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, useJwks } from '../api.ts'
import { Badge, Card, ErrorMessage, MutedText } from '../components/ui.tsx'
import { CheckList } from '../receipts/verification-result.tsx'
import { routeHref } from '../route.ts'
import { type AuditCheckpoint, type AuditEvent, checkChain, checkHeads, holds } from './audit-chain.ts'

type Props = { events: AuditEvent[]; checkpoint: AuditCheckpoint | null; isFiltered: boolean }

const SHOWN_SPANS = 5

/** The chain is recomputed in this browser; the service is not asked whether it holds. */
export function ChainCard({ events, checkpoint, isFiltered }: Props) {
  const jwks = useJwks()
  const spans = useMemo(() => checkChain(events, isFiltered), [events, isFiltered])
  const heads = useMemo(
    () => (checkpoint && jwks.data ? checkHeads(events, checkpoint, jwks.data, new Date()) : []),
    [events, checkpoint, jwks.data],
  )
  if (events.length === 0) return null
  const checks = [...spans, ...heads]
  const shown = [...checks.filter(({ ok }) => ok === false), ...checks.filter(({ ok }) => ok !== false)]
  const [newest, oldest] = [events[0]!.seq, events.at(-1)!.seq]
  return (
    <Card title="Chain check" note="Recomputed in this browser over the events below">
      <p className={`verdict ${holds(checks) ? 'success' : 'error'}`} role="status" data-chain={holds(checks)}>
        <Badge tone={holds(checks) ? 'success' : 'error'}>
          {!holds(checks)
            ? 'The chain does not hold.'
            : isFiltered
              ? `The ${events.length} events shown are unchanged.`
              : `The chain holds from event ${oldest} to event ${newest}.`}
        </Badge>
      </p>
      <CheckList checks={shown.slice(0, SHOWN_SPANS)} />
      {isFiltered && (
        <MutedText>
          A filter leaves events out, so only the links between events that follow each other are checked.
        </MutedText>
      )}
      <WholeChainCheck checkpoint={checkpoint} />
    </Card>
  )
}

/** Reads the whole chain and checks it from its first event to its head. */
function WholeChainCheck({ checkpoint }: Pick<Props, 'checkpoint'>) {
  const check = useMutation({
    gcTime: 0,
    mutationFn: async () => {
      const text = (await api.get('/api/audit', { query: { format: 'ndjson' } })) as unknown as string
      const { ok, count, checks } = verifyAuditExport(text, checkpoint ? { head: checkpoint } : {})
      return { ok, count, checks }
    },
  })
  return (
    <>
      <div className="row">
        <button type="button" className="secondary" disabled={check.isPending} onClick={() => check.mutate()}>
          {check.isPending ? 'Reading the whole chain…' : 'Check the whole chain'}
        </button>
        <span role="status">
          {check.data && (
            <Badge tone={check.data.ok ? 'success' : 'error'}>
              {check.data.ok
                ? `All ${check.data.count} events hold, from the first to the head.`
                : 'The whole chain does not hold.'}
            </Badge>
          )}
        </span>
      </div>
      {check.data && !check.data.ok && <CheckList checks={check.data.checks} />}
      {check.error && <ErrorMessage>{check.error.message}</ErrorMessage>}
      <MutedText>
        It shows that what was recorded was not changed or removed, not that everything was recorded. The saved chain is
        verified without this service by <code>countersign verify audit.ndjson</code> or on the{' '}
        <a href={routeHref(['verify'])}>verify page</a>.
      </MutedText>
    </>
  )
}
