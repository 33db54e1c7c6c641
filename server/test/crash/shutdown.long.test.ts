import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { hostEnv, readChallenge, signPayment, spawnService, testEnv } from '../harness.ts'

/** How the service ends: as real processes, on the embedded database, by the signals that terminals and supervisors send. */
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const root = resolve(import.meta.dirname, '../../..')

function makeDataDir() {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-stop-'))
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

const isAlive = (pid: number) => {
  try {
    // A zombie has an empty command line.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}

/** The database server's process and socket folder, from its lock file. */
function readPostmaster(dataDir: string) {
  const lines = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')
  return { pid: Number(lines[0]), socketFolder: lines[4]! }
}

/** `npm start` as a shell with job control starts it: in a process group of its own. */
async function startWithNpm(args: string[] = []) {
  const dataDir = makeDataDir()
  const child: ChildProcess = spawn('npm', ['start', ...(args.length > 0 ? ['--', ...args] : [])], {
    cwd: root,
    detached: true,
    env: { ...hostEnv, ...testEnv, COUNTERSIGN_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | string>((done) => child.once('exit', (code, signal) => done(signal ?? code ?? 0)))
  let output = ''
  const url = await new Promise<string>((found, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) found(match[1]!)
    }
    child.stdout!.on('data', read)
    child.stderr!.on('data', read)
    exited.then((reason) => reject(new Error(`npm start ended (${reason}):\n${output}`)))
  })
  const postmaster = readPostmaster(dataDir)
  cleanups.push(async () => {
    // Only what a failed test left running; the group has the id of npm.
    if (!isAlive(postmaster.pid)) return
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {}
    process.kill(postmaster.pid, 'SIGQUIT')
  })
  return { child, url, postmaster, exited, dataDir }
}

async function expectNothingLeft({ url, postmaster }: Awaited<ReturnType<typeof startWithNpm>>) {
  await expect.poll(() => isAlive(postmaster.pid), { timeout: 60_000 }).toBe(false)
  await expect(fetch(`${url}/api/health`)).rejects.toThrow()
  expect(existsSync(postmaster.socketFolder)).toBe(false)
}

describe.each([
  { name: 'one process', args: [] },
  { name: 'two workers', args: ['--workers', '2'] },
])('npm start, $name', ({ args }) => {
  test('Ctrl-C, which reaches npm, launcher and server at once, ends everything and stops the database', async () => {
    const service = await startWithNpm(args)
    process.kill(-service.child.pid!, 'SIGINT')
    await service.exited
    await expectNothingLeft(service)
  })

  test('SIGTERM to npm alone ends everything and stops the database', async () => {
    const service = await startWithNpm(args)
    process.kill(service.child.pid!, 'SIGTERM')
    await service.exited
    await expectNothingLeft(service)
  })
})

test('Ctrl-C while the service starts leaves no database server running', async () => {
  const dataDir = makeDataDir()
  const child = spawn(process.execPath, ['server/src/main.ts', 'serve'], {
    cwd: root,
    env: { ...hostEnv, ...testEnv, COUNTERSIGN_DATA_DIR: dataDir },
    stdio: 'ignore',
  })
  const exited = new Promise<number | string>((done) => child.once('exit', (code, signal) => done(signal ?? code ?? 0)))
  await expect
    .poll(() => existsSync(join(dataDir, 'postgres/postmaster.pid')), { timeout: 60_000, interval: 5 })
    .toBe(true)
  const { pid } = readPostmaster(dataDir)
  child.kill('SIGINT')
  expect(await exited).toBe(0)
  expect(isAlive(pid)).toBe(false)
})

/** A model server whose answer a test holds back, so that a run is under way for as long as it likes. */
async function startHeldModel() {
  let release = () => {}
  const held = new Promise<void>((done) => {
    release = done
  })
  let received = () => {}
  const called = new Promise<void>((done) => {
    received = done
  })
  const server = createServer(async (request, response) => {
    for await (const _chunk of request);
    received()
    await held
    const chunk = (delta: object, finish_reason: string | null = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      )
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    chunk({ role: 'assistant', content: 'Why did the clock go to school? Because it wanted to be on time for once.' })
    chunk({}, 'stop')
    response.end('data: [DONE]\n\n')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  cleanups.push(() => {
    release()
    server.closeAllConnections()
    server.close()
  })
  const env = {
    LANE_PROVIDER: 'openai-compatible',
    LANE_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    LANE_MODEL: 'm',
    JUDGE_PROVIDER: 'off',
    LANE_TIMEOUT_MS: '100000',
    LANE_STALL_MS: '100000',
  }
  return { env, called, release }
}

const body = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }

/** A service with a paid run under way. */
async function startBusyService(env: Record<string, string> = {}) {
  const model = await startHeldModel()
  const service = await spawnService({ COUNTERSIGN_DATA_DIR: makeDataDir(), ...model.env, ...env })
  const postmaster = readPostmaster(service.dataDir)
  cleanups.push(async () => {
    if (!isAlive(postmaster.pid)) return
    service.child.kill('SIGKILL')
    process.kill(postmaster.pid, 'SIGQUIT')
  })
  const payer = await service.payer(1)
  const payment = await signPayment(payer, readChallenge((await service.post('/api/run', body)).headers))
  const answer = service.post('/api/run', body, payment)
  answer.catch(() => {})
  await model.called
  return { ...service, service, model, payer, payment, answer, postmaster }
}

test('an idle service is gone soon with exit code 0, whatever connections are open', async () => {
  const service = await spawnService({ COUNTERSIGN_DATA_DIR: makeDataDir() })
  const { port } = new URL(service.url)
  await service.get('/api/health')
  // A connection that sends nothing, and one that is kept alive after its answer.
  const silent = connect(Number(port), '127.0.0.1')
  silent.on('error', () => {})
  const kept = connect(Number(port), '127.0.0.1')
  kept.on('error', () => {})
  kept.write('GET /api/pricing HTTP/1.1\r\nhost: x\r\n\r\n')
  await new Promise((read) => kept.once('data', read))
  const startedAt = performance.now()
  expect(await service.stop()).toBe(0)
  // Five seconds on an idle machine; the silent connection alone would keep it for a minute.
  expect(performance.now() - startedAt).toBeLessThan(25_000)
  silent.destroy()
  kept.destroy()
})

test('work under way is finished first: health is draining, new work is refused, the run is answered and its connection closed', async () => {
  const { service, model, answer, payer, postmaster } = await startBusyService()
  service.child.kill('SIGTERM')
  await expect
    .poll(async () => (await service.get('/api/health')).body)
    .toMatchObject({ status: 'degraded', draining: true, supabase: 'embedded' })
  expect((await service.get('/api/health')).status).toBe(503)
  // Until health was seen, requests are still served; then they are refused with a description, never reset.
  await expect.poll(async () => (await service.post('/api/run', body)).status).toBe(503)
  const refused = await service.post('/api/run', body)
  expect(refused.body).toMatchObject({ error: 'error', code: 'unavailable', retryable: true })
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(refused.headers.get('connection')).toBe('close')
  model.release()
  const { status, headers, body: run } = await answer
  expect([status, headers.get('connection')]).toEqual([200, 'close'])
  expect(run.receipt).toBeDefined()
  expect(await service.exited).toBe(0)
  expect(isAlive(postmaster.pid)).toBe(false)
  expect(payer.address).toMatch(/^0x/)
})

test('work that does not end in time is handed over: exit code 0, and the next start gives the run up uncharged', async () => {
  const { service, payer, payment, postmaster } = await startBusyService({ SHUTDOWN_SECONDS: '2' })
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(isAlive(postmaster.pid)).toBe(false)
  const next = await spawnService({ COUNTERSIGN_DATA_DIR: service.dataDir })
  cleanups.push(() => next.stop())
  const stored = async () => (await next.post('/api/run', body, payment)).body
  await expect.poll(stored, { timeout: 60_000 }).toMatchObject({ charged: false })
  expect(await next.balance(payer.address)).toBe(1_000_000n)
})

test('a second signal, a second later, ends at once and still stops the database', async () => {
  const { service, postmaster } = await startBusyService()
  service.child.kill('SIGINT')
  service.child.kill('SIGINT')
  await delay(1_500)
  // Both were one Ctrl-C: the run is still waited for.
  expect(service.child.exitCode).toBe(null)
  const startedAt = performance.now()
  service.child.kill('SIGINT')
  expect(await service.exited).toBe(1)
  // The run would keep it for more than a minute.
  expect(performance.now() - startedAt).toBeLessThan(25_000)
  expect(isAlive(postmaster.pid)).toBe(false)
  expect(existsSync(postmaster.socketFolder)).toBe(false)
})

test('workers finish the runs that are under way', async () => {
  const { service, model, answer } = await startBusyService({ WORKERS: '2' })
  service.child.kill('SIGINT')
  await expect.poll(async () => (await service.get('/api/health')).body).toMatchObject({ draining: true })
  model.release()
  expect((await answer).status).toBe(200)
  expect(await service.exited).toBe(0)
})
