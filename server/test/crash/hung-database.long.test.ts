import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signPayment, spawnService } from '../harness.ts'

/** A database server that is stopped (SIGSTOP) accepts connections and answers nothing. */
const STOPPED_MS = 40_000
const body = (task: string) => ({ task, agent_id: 'comedian-v1' })

let service: Awaited<ReturnType<typeof spawnService>>
beforeAll(async () => {
  service = await spawnService({})
})
afterAll(async () => {
  signalServer('SIGCONT')
  await service.stop()
})

const postmaster = () => Number(readFileSync(join(service.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0])
const childrenOf = (parent: number) =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
      } catch {
        return false
      }
    })

/** The postmaster first when it is stopped, so that it does not start others meanwhile. */
function signalServer(signal: 'SIGSTOP' | 'SIGCONT') {
  const pid = postmaster()
  for (const target of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(target, signal)
    } catch {
      // It ended meanwhile.
    }
  }
}

test('while the database hangs every request is answered with 503, and afterwards all is well again', async () => {
  const tenant = await service.onboard()
  const payer = await service.payer(1)
  const payment = await signPayment(payer, readChallenge((await service.post('/api/run', body('first'))).headers))
  signalServer('SIGSTOP')
  const stoppedAt = performance.now()
  const timed = async (request: Promise<{ status: number; body: { code?: string } }>) => {
    const { status, body: answer } = await request
    return { status, code: answer?.code, ms: performance.now() - stoppedAt }
  }
  // Those that hang on a connection, and those that arrive when there is none left.
  const early = Array.from({ length: 15 }, () => timed(service.get('/api/runs', tenant.headers)))
  const paid = timed(service.post('/api/run', body('first'), payment))
  await delay(15_000)
  const late = Array.from({ length: 15 }, () => timed(service.get('/api/runs', tenant.headers)))
  const answers = await Promise.all([...early, ...late, paid])
  for (const answer of answers) {
    expect(answer.status).toBe(503)
    expect(answer.ms).toBeLessThan(STOPPED_MS)
  }
  expect((await service.get('/api/health')).status).toBe(503)
  await delay(Math.max(0, STOPPED_MS - (performance.now() - stoppedAt)))
  signalServer('SIGCONT')

  await expect.poll(async () => (await service.get('/api/health')).status, { timeout: 60_000 }).toBe(200)
  expect((await service.get('/api/runs', tenant.headers)).status).toBe(200)
  // The payment is good for its run, once.
  const finish = async () => (await service.post('/api/run', body('first'), payment)).status
  await expect.poll(finish, { timeout: 60_000, interval: 1_000 }).toBe(200)
  expect(await service.balance(payer.address)).toBe(990_000n)
})
