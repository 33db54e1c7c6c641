import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'
import { build, type Rollup } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  formatAddCheckpoint,
  formatReceiptProof,
  formatVerifierKey,
  type Jwk,
  LOG_EVIDENCE_SCHEMA,
  NOTE_ED25519,
  type ReceiptLog,
} from '../src/proof.ts'
import type { LogInput, LogResult, PageInput, PageResult } from './browser-page.ts'
import { fillerHashes, jwks, LOG_ORIGIN, logKey, logReceipt, makeCheckpoint, makeReceipt, testKey } from './fixtures.ts'
import { cosign, witnessVkey } from './witnesses.ts'

const testdata = new URL('../testdata/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, testdata), 'utf8')

const PAGE = `<!doctype html><title>proof</title>
<script type="module">import { runLog, runVectors } from '/proof.js'; Object.assign(globalThis, { runLog, runVectors })</script>`

let server: Server
let browser: Browser
let bundle: string

beforeAll(async () => {
  bundle = await bundleForBrowser()
  server = createServer((request, response) => {
    const script = request.url === '/proof.js'
    response.writeHead(200, { 'content-type': script ? 'text/javascript' : 'text/html' })
    response.end(script ? bundle : PAGE)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
})

afterAll(async () => {
  await browser?.close()
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
})

test('the bundle contains no Node built-in', () => {
  expect(bundle).not.toMatch(/node:|__vite-browser-external|\brequire\(/)
})

test('all vectors have the expected result and a receipt verifies in Chromium as in Node', async () => {
  const page = await browser.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const input = pageInput()
  const result = await page.evaluate(
    (vectors) => (globalThis as unknown as { runVectors(input: PageInput): PageResult }).runVectors(vectors),
    input,
  )

  expect(errors).toEqual([])
  expect(result.jcsAgree).toBe(input.jcs.length)
  expect(result.ed25519Agree).toBe(151)
  expect(result.receipt.checks.filter(({ ok }) => ok === false)).toEqual([])
  expect(result.receipt.ok).toBe(true)
  expect(result.tampered.ok).toBe(false)
})

test('a page verifies a proof file against a policy, decides as a witness, judges evidence and remembers, without a request', async () => {
  const page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  const result = await page.evaluate(
    (input) => (globalThis as unknown as { runLog(input: LogInput): Promise<LogResult> }).runLog(input),
    logInput(),
  )
  const expected = { proof: true, withoutQuorum: false, witnessStatus: 200, evidence: true, memory: [true, false] }
  expect([result, requests]).toEqual([expected, []])
})

function logInput(): LogInput {
  const vkey = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })
  const witness = testKey(40)
  const receipt = logReceipt(makeReceipt())
  const log = receipt.log as ReceiptLog
  const checkpoint = log.checkpoint + cosign(log.checkpoint, 'witness.example/w', witness, 1_794_000_000)
  const checkpoints: [string, string] = [makeCheckpoint(fillerHashes(7)), makeCheckpoint(fillerHashes(7).reverse())]
  return {
    policy: `log ${vkey}\nwitness w ${witnessVkey('witness.example/w', witness)}\nquorum w\n`,
    proofFile: formatReceiptProof(receipt, { ...log, checkpoint }),
    request: formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint: checkpoints[0] }),
    logKey: vkey,
    evidence: {
      schema: LOG_EVIDENCE_SCHEMA,
      kind: 'fork',
      origin: LOG_ORIGIN,
      checkpoints,
      observed_at: ['2026-11-16T10:00:00.000Z', '2026-11-16T10:00:10.000Z'],
    },
    checkpoints,
    origin: LOG_ORIGIN,
    now: '2026-11-16T10:00:00.000Z',
  }
}

/** Bundles browser-page.ts in memory as a site would. */
async function bundleForBrowser(): Promise<string> {
  const [output] = (await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: false,
      target: 'es2022',
      lib: { entry: fileURLToPath(new URL('browser-page.ts', import.meta.url)), formats: ['es'], fileName: 'proof' },
    },
  })) as Rollup.RollupOutput[]
  return output!.output[0].code
}

function pageInput(): PageInput {
  const groups: { publicKeyJwk: Jwk; tests: { tcId: number; msg: string; sig: string; result: string }[] }[] =
    JSON.parse(read('wycheproof-ed25519.json')).testGroups
  const receipt = logReceipt(makeReceipt())
  return {
    jcs: readdirSync(new URL('jcs/input', testdata)).map((name) => ({
      name,
      input: read(`jcs/input/${name}`),
      output: read(`jcs/output/${name}`),
    })),
    ed25519: groups.flatMap(({ publicKeyJwk, tests }) =>
      tests.map(({ tcId, msg, sig, result }) => ({ id: tcId, jwk: publicKeyJwk, msg, sig, valid: result === 'valid' })),
    ),
    receipt,
    tampered: { ...receipt, agent_id: 'another-lane' },
    jwks,
  }
}
