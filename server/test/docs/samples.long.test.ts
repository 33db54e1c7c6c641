import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

/** Takes the commands and programs from the pages of `/docs` and runs them as they are shown. */
const repository = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)
const ADMIN_KEY = 'an-admin-key-for-the-samples-of-docs'

let service: TestService
let env: NodeJS.ProcessEnv
let folder: string
let operationIds: string[]

beforeAll(async () => {
  service = await startService({ env: { ADMIN_KEY } })
  const { apiKey } = await service.onboard()
  const payerKey = generatePrivateKey()
  await service.post('/api/dev/faucet', { address: privateKeyToAccount(payerKey).address, amount_usdc: 5 })
  env = {
    PATH: process.env.PATH,
    COUNTERSIGN_API_KEY: apiKey,
    COUNTERSIGN_ADMIN_KEY: ADMIN_KEY,
    PAYER_PRIVATE_KEY: payerKey,
  }
  // Beside the packages, so that a program finds the SDK as one of a project does.
  folder = mkdtempSync(join(repository, 'sdk/samples-'))
  const { paths } = (await service.get('/openapi.json')).body as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  operationIds = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
})
afterAll(async () => {
  await service?.close()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decode = (markup: string) =>
  markup.replace(/<[^>]*>/g, '').replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name]!)

async function readSamples(operationId: string): Promise<{ curl: string; typescript: string }> {
  const { text } = await service.get(`/docs/operations/${operationId}`)
  const codeAfter = (id: string) => decode(new RegExp(`<h2 id="${id}">.*?<pre[^>]*>(.*?)</pre>`, 's').exec(text)![1]!)
  return { curl: codeAfter('curl'), typescript: codeAfter('typescript') }
}

type Answer = { operationId: string; status: number; body: string }

/** The answers to the commands on the pages, in one shell. */
async function runCommands(ids: readonly string[]): Promise<Answer[]> {
  const samples = await Promise.all(ids.map(readSamples))
  // Only what reports the status is added; the commands themselves stay as they are.
  const report = `curl() { command curl -s --max-time 3 -w '\\n%{http_code}\\n::end\\n' "$@"; }`
  const script = [report, ...samples.map(({ curl }) => curl)].join('\n')
  const { stdout } = await run('bash', ['-c', `${script}\ntrue`], { env, maxBuffer: 1 << 26 })
  const answers = stdout.split('\n::end\n').slice(0, -1)
  expect(answers).toHaveLength(ids.length)
  return answers.map((answer, index) => {
    const end = answer.lastIndexOf('\n')
    return { operationId: ids[index]!, status: Number(answer.slice(end + 1)), body: answer.slice(0, end) }
  })
}

async function runProgram(operationId: string): Promise<string> {
  const { typescript } = await readSamples(operationId)
  const file = join(folder, `${operationId}.ts`)
  writeFileSync(file, typescript)
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', file], { env })
  return stdout
}

test.each([
  ['getPricing', 200],
  ['route', 200],
  ['run', 402],
  ['onboard', 201],
  ['getMe', 200],
  ['createWebhook', 201],
  ['createWallet', 201],
  ['listReceipts', 200],
  ['listTenants', 200],
  ['getLlmsText', 200],
])('the command of %s does what it says', async (operationId, status) => {
  const [answer] = await runCommands([operationId])
  expect([answer!.status, answer!.body]).toEqual([status, expect.stringMatching(/\S/)])
})

test.each([
  ['getPricing', 'price_usdc'],
  ['route', "recommended_agent_id: 'analyst-v1'"],
  ['createWallet', "wallet_id: 'wal_"],
  ['getMe', 'org'],
  ['run', / rcpt_[\w-]+ true\n$/],
  ['listReceipts', "receipt_id: 'rcpt_"],
])('the program of %s does what it says', async (operationId, printed) => {
  expect(await runProgram(operationId)).toMatch(printed)
})

/** What a fresh service answers to these although the command is right. */
const EXCEPTIONS: Record<string, { status: number; reason: string }> = {
  openSession: { status: 401, reason: 'the key in its body is to be replaced by your own' },
  cosignLog: { status: 503, reason: 'no witness is configured' },
  routeIntent: { status: 501, reason: 'planned' },
  listAlerts: { status: 403, reason: 'not in the free plan' },
  authorize: { status: 400, reason: 'there is no denial to override' },
  rhRun: { status: 403, reason: 'the tenant in its body is to be replaced by your own' },
  rhAuth: { status: 503, reason: 'no broker is configured' },
  rhAuthCallback: { status: 400, reason: 'a browser brings the code from the broker' },
}

test('every command on the pages is one that the service understands', async () => {
  const refused = (await runCommands(operationIds)).filter(({ operationId, status }) => {
    // An example has an id of its own, which this service does not know.
    const isUnderstood = (status > 0 && status < 400) || [402, 404, 409, 410, 429].includes(status)
    return !isUnderstood && EXCEPTIONS[operationId]?.status !== status
  })
  expect(refused).toEqual([])
})

test('every program on the pages compiles with the SDK under strict rules', async () => {
  const files = await Promise.all(
    operationIds.map(async (operationId) => {
      const file = join(folder, `check-${operationId}.ts`)
      // A file without an import would share its names with the others.
      writeFileSync(file, `${(await readSamples(operationId)).typescript}\nexport {}\n`)
      return file
    }),
  )
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        target: 'es2024',
        module: 'nodenext',
        moduleResolution: 'nodenext',
        lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
        types: ['node'],
        skipLibCheck: true,
        allowImportingTsExtensions: true,
      },
      files,
    }),
  )
  const tsc = join(repository, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', folder], { env }).catch(
    (error) => error as { stdout: string },
  )
  expect(stdout).toBe('')
})
