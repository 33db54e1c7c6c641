import { useQuery } from '@tanstack/react-query'
import { api, jwksQuery, queryClient } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, Id, Timestamp } from '../components/ui.tsx'
import { formatCount } from '../format.ts'
import { openStorage } from '../session.ts'
import { checkLog, type LogStatus, parseLogHistory } from './log-consistency.ts'

const STORAGE_KEY = 'countersign.log-head'

async function fetchLogStatus(): Promise<LogStatus> {
  const [note, jwks] = await Promise.all([api.get('/api/log/checkpoint'), queryClient.ensureQueryData(jwksQuery)])
  const status = await checkLog(note, {
    jwks,
    history: parseLogHistory(openStorage()?.getItem(STORAGE_KEY) ?? null),
    now: new Date(),
    fetchConsistencyProof: async (from, to) => (await api.get('/api/log/consistency', { query: { from, to } })).proof,
  })
  if (status.consistent) openStorage()?.setItem(STORAGE_KEY, JSON.stringify(status.history))
  return status
}

export function LogCard() {
  const log = useQuery({ queryKey: ['log'], queryFn: fetchLogStatus, refetchInterval: 30_000 })
  return (
    <Card title="Transparency log" note="Latest checkpoint, verified in this browser">
      <QueryResult query={log}>
        {(status) => (
          <>
            <p>
              {status.consistent ? (
                <Badge tone="success">Signature valid; no entry was removed or changed.</Badge>
              ) : (
                <Badge tone="error">{status.problem}</Badge>
              )}
            </p>
            {status.head && (
              <DescriptionList
                items={[
                  ['Log', status.head.origin],
                  ['Entries', formatCount(status.head.size)],
                  ['Root', <Id key="root" value={status.head.root} full />],
                ]}
              />
            )}
            {status.history && (
              <p className="muted">
                This browser has followed the log since <Timestamp at={status.history.first.at} />, from entry{' '}
                {formatCount(status.history.first.size)} on.{' '}
                <button
                  type="button"
                  className="link"
                  onClick={() => {
                    openStorage()?.removeItem(STORAGE_KEY)
                    void log.refetch()
                  }}
                >
                  Reset
                </button>
              </p>
            )}
          </>
        )}
      </QueryResult>
    </Card>
  )
}
