import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { formatVerifierKey, NOTE_ED25519, verifyLogEvidence } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Finding } from '../../../cli/src/log-monitor.ts'
import { openWitnessKey, type WitnessAnswer } from '../../../cli/src/witness.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { richTenant, run, type Tenant } from '../governance/world.ts'
import { startService } from '../harness.ts'
import { type AttackName, expectCaught, expectNothingFalse } from './attacks.ts'
import { createReader, createWorld, type Look, type View, WITNESSES, type World } from './world.ts'

/** Witnesses and monitors of the command line as processes of their own, against a real service and against logs that lie. */
const cli = resolve(import.meta.dirname, '../../../cli/src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'countersign-witness-processes-'))
const children = new Set<ChildProcess>()
const environment = { PATH: process.env.PATH, HOME: folder }
const node = ['--disable-warning=ExperimentalWarning', cli]

afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const countersign = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
  new Promise((finish) =>
    execFile(process.execPath, [...node, ...args], { env: environment, cwd: folder }, (error, out, err) =>
      finish({ code: error ? Number(error.code ?? 1) : 0, out, err }),
    ),
  )

type WitnessProcess = { child: ChildProcess; verifierKey: string; url: string; exited: Promise<unknown> }

async function startWitness(i: number, logs: string[], port = 0): Promise<WitnessProcess> {
  const args = [
    'witness',
    '--name',
    `witness.example/w${i + 1}`,
    '--state',
    join(folder, `w${i}`),
    '--port',
    String(port),
  ]
  const child = spawn(process.execPath, [...node, ...args, '--log', ...logs], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  const exited = new Promise((ended) => child.once('exit', ended))
  const [verifierKey, url] = await new Promise<[string, string]>((ready, fail) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      const match = /^witness (\S+) (\S+)\n/.exec(output)
      if (match) ready([match[1]!, match[2]!])
    })
    child.stderr.on('data', (chunk) => (output += chunk))
    exited.then((code) => fail(new Error(`The witness ended (${code}): ${output}`)))
  })
  return { child, verifierKey, url, exited }
}

const kill = async ({ child, exited }: WitnessProcess) => {
  child.kill('SIGKILL')
  await exited
}

async function until<T>(read: () => Promise<T>, isEnough: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const value = await read()
    if (isEnough(value)) return value
    if (Date.now() > deadline) throw new Error(`It did not come: ${JSON.stringify(value)}`)
    await new Promise((wait) => setTimeout(wait, 100))
  }
}

describe('a service with three witness processes', () => {
  const SIGNING_KEY = 'the signing key of a service with witnesses'
  const LOG_NAME = 'log.example/witnessed'
  const publicKey = createKeys({ signing: SIGNING_KEY, encryption: 'of no use here, but long enough' }).signer(
    'log',
  ).publicKey
  const logKey = formatVerifierKey({ name: LOG_NAME, type: NOTE_ED25519, publicKey })
  const policyFile = join(folder, 'service.policy')
  let witnesses: WitnessProcess[]
  let service: Awaited<ReturnType<typeof startService>>
  let tenant: Tenant

  beforeAll(async () => {
    witnesses = await Promise.all(Array.from({ length: WITNESSES }, (_, i) => startWitness(i, [logKey])))
    const lines = witnesses.map(({ verifierKey, url }, i) => `witness w${i + 1} ${verifierKey} ${url}`)
    writeFileSync(policyFile, `log ${logKey}\n${lines.join('\n')}\ngroup g 2 w1 w2 w3\nquorum g\n`)
    service = await startService({ env: { SIGNING_KEY, LOG_NAME, LOG_POLICY: policyFile } })
    tenant = await richTenant(service)
  })
  afterAll(async () => {
    await service?.close()
    await Promise.all(witnesses.map(kill))
  })

  const health = async () => (await service.get('/api/health')).body
  const untilCosigned = (entries: number) =>
    until(health, ({ log_quorum }) => log_quorum.state === 'ok' && log_quorum.cosigned_entries >= entries)

  test('a run is cosigned, followed by a monitor and proven by a file against the policy alone', async () => {
    const answer = await run(service, tenant)
    expect(answer.status).toBe(200)
    await untilCosigned(1)
    const monitor = () =>
      countersign('monitor', service.url, '--once', '--json', '--policy', policyFile, '--state', join(folder, 'm'))
    const first = await monitor()
    expect([first.code, JSON.parse(first.out)]).toMatchObject([0, { ok: true, findings: [] }])

    const id = answer.body.receipt.receipt_id
    const file = join(folder, 'receipt.tlog-proof')
    expect(await countersign('receipts', 'proof', id, '--url', service.url, '--out', file)).toMatchObject({ code: 0 })
    expect(await countersign('verify', file, '--policy', policyFile)).toMatchObject({ code: 0 })
    const strict = join(folder, 'strict.policy')
    const forgedKey = openWitnessKey(join(folder, 'unknown.key'), 'witness.example/unknown').verifierKey
    writeFileSync(strict, `log ${logKey}\nwitness u ${forgedKey}\nquorum u\n`)
    const refused = await countersign('verify', file, '--policy', strict)
    expect([refused.code, refused.out]).toEqual([1, expect.stringContaining('FAILED   quorum')])

    const keys = await countersign('monitor', service.url, '--keys')
    expect(keys.out.trim().split('\n')).toContain(logKey)
    await run(service, tenant)
    await untilCosigned(2)
    expect(JSON.parse((await monitor()).out)).toMatchObject({ ok: true, new_entries: expect.any(Number), findings: [] })
  })

  test('runs go on without a quorum, health says so, and killed witnesses catch up from what they wrote', async () => {
    const { log_quorum: before } = await untilCosigned(1)
    const ports = witnesses.map(({ url }) => Number(new URL(url).port))
    await Promise.all(witnesses.slice(1).map(kill))
    const answer = await run(service, tenant)
    expect([answer.status, answer.body.receipt.charged]).toEqual([200, true])
    const waiting = await until(health, ({ log_quorum }) => log_quorum.state !== 'ok')
    expect([waiting.status, waiting.log_quorum.cosigned_entries]).toEqual(['ok', before.cosigned_entries])
    const proof = await service.get(
      `/api/receipts/${answer.body.receipt.receipt_id}/proof?witnessed=true&format=tlog-proof`,
    )
    expect(proof.status).toBe(404)
    witnesses = [witnesses[0]!, ...(await Promise.all([1, 2].map((i) => startWitness(i, [logKey], ports[i]))))]
    const { log_quorum } = await untilCosigned(waiting.log_quorum.entries)
    expect(log_quorum.cosigned_entries).toBeGreaterThan(before.cosigned_entries)
  })
})

describe('logs that lie to three witness processes and a monitor process', () => {
  // A seed decides what happens; the clock of processes cannot be moved, so the seed of the stale witness needs none.
  const seeds: [AttackName, number][] = [
    ['fork', 1],
    ['split view', 2],
    ['rollback', 3],
    ['withheld entry', 4],
    ['stale witness', 5],
    ['lying witness', 6],
  ]
  const HONEST_SEED = 1_000_001
  let witnesses: WitnessProcess[]
  let server: Server
  let shown: (() => View) | undefined
  let url: string

  beforeAll(async () => {
    const worlds = await Promise.all([...seeds.map(([, seed]) => seed), HONEST_SEED].map((seed) => createWorld(seed)))
    const logs = worlds.map(({ logVerifierKey }) => logVerifierKey)
    for (const world of worlds) world.remove()
    witnesses = await Promise.all(Array.from({ length: WITNESSES }, (_, i) => startWitness(i, logs)))
    server = createServer(async (request, response) => {
      const bytes = await createReader(shown!)(decodeURI(request.url!).replace(/^\/log\//, ''))
      response.writeHead(bytes ? 200 : 404).end(bytes)
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/log`
  })
  afterAll(async () => {
    server?.close()
    await Promise.all(witnesses.map(kill))
  })

  const submit = async (i: number, body: string): Promise<WitnessAnswer> => {
    const response = await fetch(`${witnesses[i]!.url}/add-checkpoint`, { method: 'POST', body })
    return { status: response.status, type: response.headers.get('content-type') ?? '', body: await response.text() }
  }

  const createProcessWorld = (seed: number) => {
    const witnessKeys = witnesses.map((_, i) =>
      openWitnessKey(join(folder, `w${i}`, 'witness.key'), `witness.example/w${i + 1}`),
    )
    return createWorld(seed, { submit, witnessKeys, now: new Date(), rounds: 1 })
  }

  /** The monitor as a process: its findings as it prints them, with the evidence that it wrote. */
  const createProcessLook = (world: World): Look => {
    const policy = join(folder, `${world.seed}.policy`)
    const state = join(folder, `monitor-${world.seed}`)
    writeFileSync(policy, world.policyText)
    return async (view) => {
      shown = view
      const { code, out, err } = await countersign(
        'monitor',
        url,
        '--once',
        '--json',
        '--policy',
        policy,
        '--state',
        state,
      )
      if (code === 2) throw new Error(err)
      const { ok, findings } = JSON.parse(out)
      expect(code).toBe(ok ? 0 : 1)
      return findings.map((finding: Finding & { evidence: string | null }) => ({
        ...finding,
        evidence: finding.evidence === null ? undefined : JSON.parse(readFileSync(finding.evidence as never, 'utf8')),
      }))
    }
  }

  test.each(seeds)('%s (seed %i) is caught within one checkpoint', async (name, seed) => {
    const world = await createProcessWorld(seed)
    await expectCaught(name, world, createProcessLook(world))
    const state = join(folder, `monitor-${seed}`)
    for (const file of readdirSync(state).filter((each) => each.startsWith('evidence-'))) {
      const evidence = JSON.parse(readFileSync(join(state, file), 'utf8'))
      expect(verifyLogEvidence(evidence, { policy: world.policy }).ok).toBe(true)
    }
    if (name !== 'fork') return
    const [file] = readdirSync(state).filter((each) => each.startsWith('evidence-fork-'))
    const verified = await countersign('verify', join(state, file!), '--policy', join(folder, `${seed}.policy`))
    expect(verified).toMatchObject({ code: 0, out: expect.stringContaining('Result: valid') })
  })

  test('nothing is found in an honest log', async () => {
    const world = await createProcessWorld(HONEST_SEED)
    await expectNothingFalse(world, createProcessLook(world))
    expect(world.seed).toBe(HONEST_SEED)
  })

  test('a witness that is killed after its answer does not cosign another history when it starts again', async () => {
    const world = await createWorld(HONEST_SEED)
    const port = Number(new URL(witnesses[0]!.url).port)
    const known = await submit(0, `old 0\n\n${world.sign(['x'])}`)
    const size = known.status === 409 ? Number(known.body) : 1
    await kill(witnesses[0]!)
    witnesses[0] = await startWitness(0, [world.logVerifierKey], port)
    const forged = Array.from({ length: size }, (_, i) => `forged ${i}`)
    const same = await submit(0, `old ${size}\n\n${world.sign(forged)}`)
    expect([same.status, same.type]).toEqual([409, expect.stringContaining('text/plain')])
    const longer = await submit(
      0,
      `old ${size}\n${Buffer.alloc(32, 1).toString('base64')}\n\n${world.sign([...forged, 'y'])}`,
    )
    expect(longer.status).toBe(422)
    const again = await submit(0, `old 0\n\n${world.sign(forged)}`)
    expect([again.status, again.body, again.type]).toEqual([409, `${size}\n`, 'text/x.tlog.size'])
    world.remove()
  })

  test('a second witness on the same state is refused, and so is a damaged state', async () => {
    const logs = (await createWorld(HONEST_SEED)).logVerifierKey
    const second = await countersign(
      'witness',
      '--name',
      'witness.example/w2',
      '--state',
      join(folder, 'w1'),
      '--port',
      '0',
      '--log',
      logs,
    )
    expect([second.code, second.err]).toEqual([2, expect.stringContaining('is in use by process')])
    await kill(witnesses[1]!)
    const file = readdirSync(join(folder, 'w1')).find((name) => name.startsWith('log-'))!
    writeFileSync(join(folder, 'w1', file), '{"origin":')
    const damaged = await countersign(
      'witness',
      '--name',
      'witness.example/w2',
      '--state',
      join(folder, 'w1'),
      '--port',
      '0',
      '--log',
      logs,
    )
    expect([damaged.code, damaged.err]).toEqual([2, expect.stringContaining('is damaged')])
  })
})
