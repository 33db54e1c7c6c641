import { createService } from '../../src/app.ts'
import { readConfig } from '../../src/platform/config.ts'

/**
 * The service, with a bomb in it. Its parent says over IPC at which step, at the how-manieth time, and who dies:
 * this process or its PostgreSQL, either as `kill -9` would.
 */
type Order = { at: string; hit: number; victim: 'server' | 'postgres' }
let order: Order | undefined

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
process.on('message', (message: Order) => {
  order = message
  process.send!({ armed: true })
})
process.on('SIGTERM', async () => {
  await service.close()
  process.exit(0)
})
console.log(`listens on ${await service.listen()}`)
