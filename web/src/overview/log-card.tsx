import { useQuery } from '@tanstack/react-query'
import { count } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Facts, Id, Mark, When } from '../parts/parts.tsx'
import { keySetQuery, queries, service } from '../service.ts'
import { stored } from '../session.ts'
import { type LogView, readMemory, watchLog } from './watch-log.ts'

const MEMORY = 'countersign.log-head'

async function look(): Promise<LogView> {
  const [note, jwks] = await Promise.all([service.get('/api/log/checkpoint'), queries.ensureQueryData(keySetQuery)])
  const view = await watchLog(note, {
    jwks,
    memory: readMemory(stored()?.getItem(MEMORY) ?? null),
    now: new Date(),
    askConsistency: async (from, to) => (await service.get('/api/log/consistency', { query: { from, to } })).proof,
  })
  if (view.holds) stored()?.setItem(MEMORY, JSON.stringify(view.memory))
  return view
}

export function LogCard() {
  const log = useQuery({ queryKey: ['log'], queryFn: look, refetchInterval: 30_000 })
  return (
    <Card title="Transparency log" note="Newest checkpoint, checked in this browser">
      <Loaded query={log}>
        {(view) => (
          <>
            <p>
              {view.holds ? (
                <Mark tone="good">The signature holds and nothing was taken back.</Mark>
              ) : (
                <Mark tone="bad">{view.problem}</Mark>
              )}
            </p>
            {view.head && (
              <Facts
                facts={[
                  ['Log', view.head.origin],
                  ['Entries', count(view.head.size)],
                  ['Root', <Id key="root" value={view.head.root} full />],
                ]}
              />
            )}
            {view.memory && (
              <p className="soft">
                This browser has followed the log since <When at={view.memory.first.at} />, from entry{' '}
                {count(view.memory.first.size)} on.{' '}
                <button
                  type="button"
                  className="link"
                  onClick={() => {
                    stored()?.removeItem(MEMORY)
                    void log.refetch()
                  }}
                >
                  Forget what it saw
                </button>
              </p>
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}
