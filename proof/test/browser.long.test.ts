import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'
import { build, type Rollup } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Jwk } from '../src/proof.ts'
import type { PageInput, PageResult } from './browser-page.ts'
import { jwks, logReceipt, makeReceipt } from './fixtures.ts'

const testdata = new URL('../testdata/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, testdata), 'utf8')

const PAGE = `<!doctype html><title>proof</title>
<script type="module">import { runVectors } from '/proof.js'; globalThis.runVectors = runVectors</script>`

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
