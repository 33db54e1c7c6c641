import { createService } from '../../src/app.ts'
import { readConfig } from '../../src/platform/config.ts'

/**
 * The service, with a kill switch. Its parent orders over IPC which process is killed with SIGKILL (this one or its
 * PostgreSQL), at which step, and how many times that step must be reached first.
 */
type KillOrder = { at: string; hit: number; victim: 'server' | 'postgres' }
let order: KillOrder | undefined

const service = await createService(readConfig(process.env), {
  probe: (step) => {
    if (!order || step !== order.at || --order.hit > 0) return
    const { victim } = order
    order = undefined
    process.send!({ died: victim, at: step })
    if (victim === 'server') process.kill(process.pid, 'SIGKILL')
    else process.kill(service.postgres!.pid()!, 'SIGKILL')
  },
})
process.on('message', (message: KillOrder) => {
  order = message
  process.send!({ armed: true })
})
process.on('SIGTERM', async () => {
  await service.close()
  process.exit(0)
})
console.log(`listens on ${await service.listen()}`)
