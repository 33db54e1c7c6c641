import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import { startService } from '../harness.ts'

/** The command line against a running service, as a person uses it: exit codes, messages and files. */
const cli = resolve(import.meta.dirname, '../../../cli/src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'countersign-cli-'))
let service: Awaited<ReturnType<typeof startService>>
let tenant: Tenant

beforeAll(async () => {
  service = await startService()
  tenant = await richTenant(service)
})
afterAll(async () => {
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

type Env = Record<string, string | undefined>
const start = (args: string[], env: Env = {}) =>
  spawn(process.execPath, ['--disable-warning=ExperimentalWarning', cli, ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      COUNTERSIGN_URL: service.url,
      COUNTERSIGN_API_KEY: tenant.apiKey,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 100_000,
  })

async function countersign(args: string[], env: Env = {}) {
  const child = start(args, env)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const code = await new Promise((done) => child.once('close', done))
  return { code, stdout, stderr }
}

const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await countersign([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('mistakes', () => {
  test('an unknown command is refused with the one that was meant', async () => {
    const { code, stderr } = await countersign(['recipts', 'list'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean receipts?')])
  })

  test('a service that is not there says how to start or name one', async () => {
    const { code, stderr } = await countersign(['pricing'], { COUNTERSIGN_URL: 'http://127.0.0.1:1' })
    expect([code, stderr]).toEqual([2, expect.stringMatching(/countersign serve.*COUNTERSIGN_URL/)])
    expect(stderr).not.toContain('    at ')
  })

  test('an address without a scheme says so', async () => {
    const { code, stderr } = await countersign(['pricing', '--url', 'countersign.example'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('https://')])
  })

  test('without a key, a command of a tenant says how to give or make one', async () => {
    const { code, stderr } = await countersign(['budgets', 'list'], { COUNTERSIGN_API_KEY: undefined })
    expect([code, stderr]).toEqual([2, expect.stringMatching(/COUNTERSIGN_API_KEY.*keys onboard/)])
  })

  test.each([
    ['no file', ['budgets', 'list', '--key-file', 'none.key'], /There is no file none\.key/],
    ['a float of too many decimals', ['budgets', 'set', '--limit', '0.30000000000000004'], /six decimals/],
    ['a price that is no number', ['run', 'Hello', '--max-usdc', 'free'], /amount of USDC/],
    ['a wrong payer key', ['run', 'Hello'], /64 hexadecimal digits/],
    ['a policy that is no JSON', ['policies', 'simulate', cli], /cannot be read as JSON/],
    ['a shell that is not known', ['completion', 'powershell'], /bash, zsh, fish/],
  ])('%s is refused before anything is sent', async (_, args, message) => {
    const { code, stderr } = await countersign(args, { COUNTERSIGN_PAYER_KEY: '0x12' })
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
  })

  test('a key is not written over a file that exists, and is not lost', async () => {
    writeFileSync(join(folder, 'taken.key'), 'mine')
    const args = ['keys', 'create', '--name', 'reader', '--scopes', 'read', '--save', 'taken.key']
    const { code, stderr } = await countersign(args)
    expect([code, stderr]).toEqual([2, expect.stringMatching(/EEXIST.*It is \S{20,}/)])
    expect(readFileSync(join(folder, 'taken.key'), 'utf8')).toBe('mine')
  })

  test('a service cannot steer the terminal', async () => {
    const hostile = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          agents: [{ agent_id: '\u001b[2J\u009b31mowned', price_usdc: 1, tier: '', description: '' }],
        }),
      ),
    )
    await new Promise<void>((done) => hostile.listen(0, '127.0.0.1', done))
    const { port } = hostile.address() as AddressInfo
    const { stdout } = await countersign(['pricing', '--url', `http://127.0.0.1:${port}`])
    hostile.close()
    expect(stdout).toContain('owned')
    expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u)
  })
})

test('--version is that of the package; --help lists the exit codes; neither output has colour in a pipe', async () => {
  const { version } = JSON.parse(readFileSync(resolve(cli, '../../package.json'), 'utf8'))
  expect((await countersign(['--version'])).stdout).toBe(`${version}\n`)
  const { code, stdout } = await countersign(['--help'])
  expect([code, stdout]).toEqual([0, expect.stringContaining('Exit codes:')])
  expect((await countersign(['pricing'])).stdout).not.toContain('\u001b')
})

test('pricing and route are tables for people and the API’s own fields with --json', async () => {
  expect((await countersign(['pricing'])).stdout).toMatch(/^LANE +USDC +TIER +ABOUT\n/)
  expect((await json('pricing')).agents.length).toBeGreaterThan(3)
  const { stdout } = await countersign(['route', 'Sum 1, 2 and 3.'])
  expect(stdout).toMatch(/lane +\w+/)
  expect(await json('route', 'Sum 1, 2 and 3.')).toMatchObject({ price_usdc: expect.any(Number) })
})

test('a run from a wallet prints output and a verified receipt, which verifies offline from its file', async () => {
  const args = ['run', 'Revenue was 120, 135, 128 and 190. What stands out?', '--wallet', tenant.walletId]
  const { code, stdout, stderr } = await countersign([...args, '--receipt', 'receipt.json'])
  expect([code, stderr]).toEqual([0, 'The receipt is in receipt.json.\n'])
  expect(stdout).toMatch(/receipt +rcpt_\S+ verified/)
  writeFileSync(join(folder, 'jwks.json'), (await service.get('/.well-known/jwks.json')).text)
  const offline = await countersign(['verify', 'receipt.json', '--jwks', 'jwks.json'], {
    COUNTERSIGN_URL: 'http://127.0.0.1:1',
  })
  expect([offline.code, offline.stdout]).toEqual([0, expect.stringContaining('Result: valid')])

  const { receipt_id } = JSON.parse(readFileSync(join(folder, 'receipt.json'), 'utf8'))
  const address = `${service.url}/api/receipts/${receipt_id}`
  for (const target of [address, `${service.url}/dashboard/receipts/${receipt_id}`, receipt_id])
    expect(await countersign(['verify', target, '--jwks', 'jwks.json'])).toMatchObject({ code: 0 })
  expect(await countersign(['verify', `${service.url}/api/receipts`])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('does not end with the id of a receipt'),
  })
  expect((await countersign(['receipts', 'list'])).stdout).toContain(receipt_id)
  expect((await countersign(['spend', '--by', 'lane'])).stdout).toMatch(/spent +0\.\d+ USDC in 1 payments/)
})

test('the same idempotency key runs once', async () => {
  const args = ['run', 'Sum 4 and 5.', '--wallet', tenant.walletId, '--idempotency-key', 'cli-once-1']
  const [first, second] = [await json(...args), await json(...args)]
  expect(second.run_id).toBe(first.run_id)
})

test('run --async shows the states on standard error, and a repetition with its key gets the same run', async () => {
  const args = [
    'run',
    'Sum 6 and 7.',
    '--async',
    '--wallet',
    tenant.walletId,
    '--idempotency-key',
    'cli-async-1',
    '--json',
  ]
  const first = await countersign(args)
  const { run_id, receipt_verified } = JSON.parse(first.stdout)
  expect([first.code, receipt_verified]).toEqual([0, true])
  expect(first.stderr).toMatch(new RegExp(`${run_id} pending\n(.*\n)*${run_id} completed`))
  expect(JSON.parse((await countersign(args)).stdout).run_id).toBe(run_id)
})

test('a refusal of governance ends with 1 and charges nothing; a raised budget lets the same run pass', async () => {
  const other = await richTenant(service)
  const env = { COUNTERSIGN_API_KEY: other.apiKey }
  const set = ['budgets', 'set', '--limit', '0.001', '--window', 'day', '--json']
  const { budgets } = JSON.parse((await countersign(set, env)).stdout)
  const args = ['run', 'Sum 1 and 2.', '--wallet', other.walletId]
  const refused = await countersign(args, env)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toMatch(/budget/i)
  await countersign(['budgets', 'set', '--limit', '5', '--id', budgets[0].budget_id], env)
  expect(await countersign(args, env)).toMatchObject({ code: 0 })
  expect((await countersign(['budgets', 'list'], env)).stdout).toContain(budgets[0].budget_id)
})

test('a key is saved for its owner alone and works; a revoked one does not', async () => {
  const created = await json('keys', 'create', '--name', 'reader', '--scopes', 'read,keys', '--save', 'reader.key')
  expect(created.api_key).toBe('in reader.key')
  expect(statSync(join(folder, 'reader.key')).mode & 0o777).toBe(0o600)
  const list = ['keys', 'list', '--key-file', 'reader.key']
  expect((await countersign(list, { COUNTERSIGN_API_KEY: undefined })).stdout).toContain(created.key_id)
  expect(await countersign(['keys', 'revoke', created.key_id])).toMatchObject({ code: 0 })
  expect(await countersign(list, { COUNTERSIGN_API_KEY: undefined })).toMatchObject({ code: 2 })
})

test('doctor ends with 1 and says what to do when the key is refused, and with 0 when all is well', async () => {
  expect(await countersign(['doctor'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/ok +key/) })
  const refused = await countersign(['doctor'], { COUNTERSIGN_API_KEY: 'cs_nobody' })
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/PROBLEM +key .*keys onboard/)])
})

test('policies simulate and basis answer from the API', async () => {
  writeFileSync(join(folder, 'policy.json'), JSON.stringify({ name: 'none', rules: [] }))
  expect((await countersign(['policies', 'simulate', 'policy.json'])).stdout).toContain('considered')
  expect((await countersign(['basis', 'symbols'])).stdout).toMatch(/^SYMBOL/)
  expect((await countersign(['approvals', 'list'])).stdout).toBe('Nothing waits.\n')
})

test('webhooks listen prints and forwards the signed bytes, refuses others, and unsubscribes at the end', async () => {
  const received: { body: string; signature: unknown }[] = []
  const target = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      received.push({ body, signature: request.headers['webhook-signature'] })
      response.end()
    })
  })
  await new Promise<void>((done) => target.listen(0, '127.0.0.1', done))
  const forward = `http://127.0.0.1:${(target.address() as AddressInfo).port}/hook`
  const child = start(['webhooks', 'listen', '--forward', forward, '--events', 'run.completed'])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  await expect.poll(() => output).toMatch(/Listening for run\.completed at/)
  const [, receiver] = /at (http:\S+)/.exec(output)!
  expect((await fetch(receiver!, { method: 'POST', body: '{"type":"run.completed"}' })).status).toBe(400)
  const wallet = { payment: { wallet_id: tenant.walletId } }
  await service.post('/api/run', { task: 'Sum 6 and 7.', ...wallet }, tenant.headers)
  await expect.poll(() => received.length).toBe(1)
  expect(JSON.parse(received[0]!.body).type).toBe('run.completed')
  expect(received[0]!.signature).toMatch(/^v1,/)
  await expect.poll(() => output).toContain('200')
  child.kill('SIGTERM')
  expect(await new Promise((done) => child.once('exit', done))).toBe(0)
  expect((await service.get('/api/webhooks', tenant.headers)).body.subscriptions).toEqual([])
  target.close()
})

describe('init', () => {
  const address = `0x${'11'.repeat(20)}`
  const settings = ['--database', 'postgres://user:secret@db.example/countersign', '--pay-to', address]

  test('writes settings that the server accepts, with new secrets, for the owner alone', async () => {
    const args = ['init', ...settings, '--facilitator', 'https://facilitator.example', '--out', 'production.env']
    expect(await countersign(args)).toMatchObject({ code: 0 })
    expect(statSync(join(folder, 'production.env')).mode & 0o777).toBe(0o600)
    const text = readFileSync(join(folder, 'production.env'), 'utf8')
    for (const name of ['NODE_ENV', 'SIGNING_KEY', 'ENCRYPTION_KEY', 'ADMIN_KEY']) expect(text).toMatch(`${name}="`)
    const again = await countersign(args)
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('--force')])
    expect(readFileSync(join(folder, 'production.env'), 'utf8')).toBe(text)
  })

  test.each([
    ['no facilitator and no chain', [], /FACILITATOR_URL/],
    ['an address that is none', ['--facilitator', 'https://facilitator.example', '--pay-to', '0x12'], /PAY_TO_ADDRESS/],
  ])('%s is refused, and no file is left', async (_, more, message) => {
    const { code, stderr } = await countersign(['init', ...settings, ...more, '--out', 'refused.env'])
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
    expect(existsSync(join(folder, 'refused.env'))).toBe(false)
  })
})

test.each(['bash', 'zsh', 'fish'])('completion for %s names every command', async (shell) => {
  const { stdout } = await countersign(['completion', shell])
  for (const name of ['demo', 'verify', 'approvals', 'webhooks', 'listen']) expect(stdout).toContain(name)
})
