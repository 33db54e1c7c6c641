import { parentPort } from 'node:worker_threads'
import type { ThreadMessage } from '../../platform/thread-pool.ts'
import { type OfflineInput, type OfflineOutput, runOfflineTask } from './offline-task.ts'

/** A thread of the offline lanes: one task after the other. */
const port = parentPort!
const send = (message: ThreadMessage<OfflineOutput>) => port.postMessage(message)

port.on('message', (input: OfflineInput) => {
  runOfflineTask(input).then(
    (output) => send({ kind: 'output', output }),
    (error) => send({ kind: 'error', message: error instanceof Error ? error.message : String(error) }),
  )
})
send({ kind: 'ready' })
