import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createClient } from '@countersign/sdk'
import { accountFromKey } from '@countersign/sdk/pay'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFreePort } from '../free-port.ts'
import { createTestDatabase, spawnService } from '../harness.ts'
import { cleanEnv } from '../packages/packed.ts'

/** Executes the code blocks of README and docs/ against a running service, in order, one shell for each page. */
const repository = resolve(import.meta.dirname, '../../..')
const PAGES = ['README.md', ...readdirSync(join(repository, 'docs')).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith('.md'),
)

type Block = { page: string; line: number; language: string; text: string }

const readBlocks = (page: string): Block[] =>
  [...readFileSync(join(repository, page), 'utf8').matchAll(/^```(sh|bash|js|mjs|ts|json)\n(.*?)^```/gms)].map(
    (match) => ({
      page,
      line: match.input.slice(0, match.index).split('\n').length,
      language: match[1]!,
      text: match[2]!,
    }),
  )

/** A block that has this text is not executed, for this reason. */
const NOT_EXECUTED: [page: string, text: string, reason: string][] = [
  [
    'README.md',
    'npm ci && npm start',
    'installs and runs until it is stopped; every check of the repository begins with npm ci',
  ],
  ['README.md', 'npm run demo', 'server/test/flows/demo.test.ts runs it'],
  ['README.md', 'npm ci && npm test', 'runs the tests'],
  ['README.md', 'npm i @countersign/sdk', 'server/test/packages/packages.long.test.ts installs the package'],
  ['README.md', 'npm i @x402/fetch', 'what it installs is in node_modules'],
  ['docs/governance.md', '$LINK', 'the link is in a message to an approver; server/test/governance tests links'],
  ['docs/governance.md', "'$TX'", 'needs a transfer of the agent on the chain'],
  ['docs/governance.md', 'verifyPreauthToken(token', 'a fragment: token and jwks are what the text before it names'],
  ['docs/markets.md', 'hashJson({ ...body', 'a fragment: receipt is what the text before it names'],
  ['docs/markets.md', '/api/rh/approve', 'needs the run of an order that waits, which the text before it shows'],
  ['docs/money.md', '/escrow -d', 'needs a second wallet, which the text before it names'],
  ['docs/money.md', 'ledger check', 'reads the database of the service; server/test/money runs it'],
  ['docs/performance.md', 'npm run bench', 'takes more than an hour'],
  [
    'docs/proof.md',
    'verifyOpening(receipt',
    'a fragment: receipt, evidence and output are what the text before it names',
  ],
  [
    'docs/proof.md',
    "import { verifyReceipt } from '@countersign/proof'",
    'a fragment: receipt and jwks are what the text before it names',
  ],
  ['docs/testing.md', 'npm run fuzz', 'takes minutes; the fuzzer is a test of its own'],
]

type Call = { method: string; path: string; status: number; body: string }
const calls: Call[] = []
const folder = mkdtempSync(join(tmpdir(), 'countersign-docs-'))
let database: Awaited<ReturnType<typeof createTestDatabase>>
let service: Awaited<ReturnType<typeof spawnService>>
let address: string
let receiverPort: number

/** Forwards everything to the service and keeps what was answered, so that a later block can use the ids. */
const recorder = createServer((request, response) => {
  const target = sendRequest(
    new URL(request.url!, service.url),
    { method: request.method, headers: { ...request.headers, connection: 'close' } },
    (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('end', () => {
        const body = Buffer.concat(chunks)
        calls.push({ method: request.method!, path: request.url!, status: answer.statusCode!, body: body.toString() })
        response.writeHead(answer.statusCode!, answer.headers).end(body)
      })
    },
  )
  target.on('error', () => response.destroy())
  request.pipe(target)
})

beforeAll(async () => {
  database = await createTestDatabase()
  service = await spawnService({
    DATABASE_URL: database.url,
    COUNTERSIGN_DATA_DIR: join(folder, '.countersign'),
    SMTP_URL: 'smtp://127.0.0.1:1',
    SMTP_FROM: 'approvals@acme.example',
  })
  await new Promise<void>((done) => recorder.listen(0, '127.0.0.1', done))
  address = `http://127.0.0.1:${(recorder.address() as AddressInfo).port}`
  receiverPort = await findFreePort()
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
})
afterAll(async () => {
  recorder.close()
  recorder.closeAllConnections()
  await service?.stop()
  await database?.drop()
  rmSync(folder, { recursive: true, force: true })
})

/** A tenant with money in a wallet, which pages take for granted, and one run with its receipt. */
async function makeTenant() {
  const { body } = await service.post('/api/onboard', { org_name: 'Docs', email: 'docs@acme.example' })
  const walletId = await makeWallet(body.api_key)
  return { apiKey: body.api_key as string, tenantId: body.tenant_id as string, walletId }
}

async function makeWallet(apiKey: string): Promise<string> {
  const key = readFileSync(join(folder, '.countersign/keys/dev-payer.key'), 'utf8').trim() as `0x${string}`
  const client = createClient({
    baseUrl: address,
    apiKey,
    account: await accountFromKey(key),
    allowDevelopmentChain: true,
  })
  const { wallet_id } = await client.post('/api/wallets', { body: { name: 'Docs' } })
  await client.topUp(wallet_id, { amount_usdc: 1 })
  await client.run({ task: 'Sum 1 and 2.', payment: { wallet_id } })
  return wallet_id
}

/** One shell for the blocks of a page. */
function openShell(env: Record<string, string>) {
  const shell = spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env: { ...cleanEnv(), ...env }, stdio: 'pipe' })
  let output = ''
  let wake = () => {}
  for (const stream of [shell.stdout, shell.stderr])
    stream.on('data', (chunk) => {
      output += chunk
      wake()
    })
  return {
    async run(text: string): Promise<{ code: number; output: string }> {
      output = ''
      shell.stdin.write(`${text}\necho; echo "::exit $?"\n`)
      for (;;) {
        const end = /\n::exit (\d+)\n/.exec(output)
        if (end) return { code: Number(end[1]), output: output.slice(0, end.index) }
        await new Promise<void>((done) => {
          wake = done
        })
      }
    },
    close: () => shell.stdin.end(),
  }
}

const ELIDED_ID = /\b([a-z]{2,4})_[0-9a-f]{8}-[0-9a-f]{4}-…/g

/** `rcpt_01a1de42-bc88-…` stands for the newest id of its kind where it first appears, as a reader puts in their own. */
function createIds() {
  const ids = new Map<string, string>()
  const newest = (kind: string) =>
    calls.flatMap(({ body }) => [...body.matchAll(new RegExp(`"(${kind}_[0-9a-f][0-9a-f-]{30,})"`, 'g'))]).at(-1)?.[1]
  const find = (elided: string, kind: string): string => {
    const id = ids.get(elided) ?? newest(kind)
    if (id) ids.set(elided, id)
    return id ?? elided
  }
  return { fillIn: (text: string) => text.replaceAll(ELIDED_ID, find) }
}

const fillInTenant = (text: string, tenant: Awaited<ReturnType<typeof makeTenant>>): string =>
  text
    .replaceAll('http://127.0.0.1:4020', address)
    .replaceAll('127.0.0.1:4128', `127.0.0.1:${receiverPort}`)
    .replaceAll('listen(4128)', `listen(${receiverPort})`)
    .replaceAll('KEY=csk_…', `KEY=${tenant.apiKey}`)
    .replaceAll('TENANT=ten_…', `TENANT=${tenant.tenantId}`)

const isRefusal = ({ status }: Call) => [400, 401, 403, 404, 405, 415].includes(status) || status >= 500
const reasonFor = ({ page, text }: Block) => NOT_EXECUTED.find(([of, part]) => of === page && text.includes(part))?.[2]
const isProgram = ({ language }: Block) => !['sh', 'bash'].includes(language)

test('every exception names exactly one block', () => {
  for (const [page, text] of NOT_EXECUTED) {
    const matching = readBlocks(page).filter(
      (block) => block.language !== 'json' && block.text.includes(text) && reasonFor(block) !== undefined,
    )
    expect([page, text, matching.length]).toEqual([page, text, 1])
  }
})

test.each(PAGES.filter((page) => readBlocks(page).some(({ language }) => language !== 'json')))(
  '%s: its blocks do what they say',
  async (page) => {
    const tenant = await makeTenant()
    const shell = openShell({ C: address, KEY: tenant.apiKey, TENANT: tenant.tenantId, WALLET: tenant.walletId })
    const ids = createIds()
    const [executed, skipped]: [number[], string[]] = [[], []]
    for (const block of readBlocks(page)) {
      if (block.language === 'json') {
        ids.fillIn(block.text)
        continue
      }
      const reason = reasonFor(block)
      if (reason) {
        skipped.push(`line ${block.line}: ${reason}`)
        continue
      }
      const before = calls.length
      // A call may use an id that the call before it answered.
      const steps = isProgram(block) ? [block.text] : block.text.split(/^(?=api |curl )/m)
      for (const step of steps) {
        const text = ids.fillIn(fillInTenant(step.replaceAll(/^#.*\n/gm, ''), tenant))
        expect(text, `${page}:${block.line} has an id that no earlier answer had`).not.toMatch(ELIDED_ID)
        if (isProgram(block)) await runProgram(block, text, shell)
        else {
          const { code, output } = await shell.run(text)
          expect([code, output], `${page}:${block.line}`).toEqual([0, expect.any(String)])
        }
      }
      const refused = calls.slice(before).filter(isRefusal)
      expect(refused, `${page}:${block.line}\n${block.text}`).toEqual([])
      if (/^(api|curl) /m.test(block.text)) expect(calls.length).toBeGreaterThan(before)
      executed.push(block.line)
      // A page that made its own tenant goes on with its key; its wallet has money as the text says.
      const onboarded = calls.slice(before).find(({ path, status }) => path === '/api/onboard' && status < 300)
      if (onboarded) {
        const { api_key, tenant_id } = JSON.parse(onboarded.body)
        await shell.run(`TENANT=${tenant_id}; WALLET=${await makeWallet(api_key)}`)
      }
    }
    shell.close()
    console.log(`${page}: executed the blocks of lines ${executed.join(', ') || 'none'}`)
    if (skipped.length > 0) console.log(`${page}: not executed\n  ${skipped.join('\n  ')}`)
  },
)

/** A whole program: it must end with 0 and print something, or, when it listens, take a delivery. */
async function runProgram(block: Block, text: string, shell: ReturnType<typeof openShell>) {
  const file = `block-${block.line}.mjs`
  writeFileSync(join(folder, file), text)
  const node = `${process.execPath} --disable-warning=ExperimentalWarning ${file}`
  if (!text.includes('.listen(')) {
    const { code, output } = await shell.run(`KEY=$KEY ${node} $WALLET`)
    expect([code, output], `${block.page}:${block.line}`).toEqual([0, expect.stringMatching(/\S/)])
    return
  }
  const created = calls.findLast(({ method, path }) => method === 'POST' && path === '/api/webhooks')!
  const { id, signingSecret } = JSON.parse(created.body)
  await shell.run(`SIGNING_SECRET='${signingSecret}' ${node} > receiver.log 2>&1 & RECEIVER=$!`)
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${receiverPort}`).then(
        ({ status }) => status,
        () => 0,
      ),
    )
    .toBe(400)
  await shell.run(`curl -s -X POST $C/api/webhooks/${id}/test -H "X-API-Key: $KEY"`)
  await expect.poll(() => readFileSync(join(folder, 'receiver.log'), 'utf8')).toMatch(/\S/)
  await shell.run('kill $RECEIVER; wait $RECEIVER; true')
}
