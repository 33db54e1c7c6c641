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

/** The status and the body of the answer to the command on the page. */
async function runCurl(operationId: string): Promise<{ status: number; body: string }> {
  const { curl } = await readSamples(operationId)
  // Only what reports the status is added; the command itself stays as it is.
  const script = `curl() { command curl -s --max-time 3 -w '\\n%{http_code}' "$@"; }\n${curl}`
  const { stdout } = await run('bash', ['-c', script], { env }).catch((error) => error as { stdout: string })
  const end = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) }
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
  const answer = await runCurl(operationId)
  expect([answer.status, answer.body]).toEqual([status, expect.stringMatching(/\S/)])
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

test('every command on the pages is one that the service understands', async () => {
  const refused: string[] = []
  for (const operationId of operationIds) {
    const { status, body } = await runCurl(operationId)
    // An example has an id of its own, which this service does not know.
    const isUnderstood = (status > 0 && status < 400) || [402, 404, 409, 410, 429].includes(status)
    if (!isUnderstood || body.includes('route_not_found'))
      refused.push(`${operationId}: ${status} ${body.slice(0, 150)}`)
  }
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
