import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createService, type Overrides } from '../src/app.ts'
import { readConfig } from '../src/platform/config.ts'
import { createTestDatabase, silentLog } from './database.ts'

export { createTestDatabase, silentLog as silent }

/** The embedded chain's development USDC, at its address on Base. */
export const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'

export type TestService = Awaited<ReturnType<typeof startService>>

export const testEnv = {
  NODE_ENV: 'test',
  PORT: '0',
  LOG_LEVEL: 'silent',
  RATE_LIMIT_ANON_PER_MINUTE: '0',
  RATE_LIMIT_KEY_PER_MINUTE: '0',
  // Hundreds of services start in the tests; those about the benchmark turn it on.
  BENCHMARK_SUITE: 'off',
}

/** Starts the whole service in this process, on a new database unless one is given. */
export async function startService(options: Overrides & { env?: Record<string, string>; databaseUrl?: string } = {}) {
  const { env = {}, databaseUrl, ...overrides } = options
  const database = databaseUrl ? undefined : await createTestDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-data-'))
  const config = readConfig({
    ...testEnv,
    COUNTERSIGN_DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl ?? database!.url,
    ...env,
  })
  const service = await createService(config, { log: silentLog, ...overrides })
  const url = await service.listen()
  return {
    url,
    service,
    db: service.db,
    ...clients(url),
    async close() {
      await service.close()
      await database?.drop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** What a process that a test starts takes over from this one. With the compile cache a service starts in half the time. */
export const hostEnv = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
}

/** Starts the service in a child process, for crash tests and for several processes on one database; `root` is a checkout. */
export async function spawnService(env: Record<string, string>, root = resolve(import.meta.dirname, '../..')) {
  const dataDir = env.COUNTERSIGN_DATA_DIR ?? mkdtempSync(join(tmpdir(), 'countersign-data-'))
  const child: ChildProcess = spawn(process.execPath, ['server/src/main.ts', 'serve'], {
    cwd: root,
    env: { ...hostEnv, ...testEnv, COUNTERSIGN_DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | string>((resolveExit) =>
    child.once('exit', (code, signal) => resolveExit(signal ?? code ?? 0)),
  )
  let output = ''
  const url = await new Promise<string>((resolveUrl, reject) => {
    const readOutput = (chunk: Buffer) => {
      output += chunk
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) resolveUrl(match[1]!)
    }
    child.stdout!.on('data', readOutput)
    child.stderr!.on('data', readOutput)
    exited.then((exitReason) => reject(new Error(`The service ended (${exitReason}) before it listened:\n${output}`)))
  })
  return {
    url,
    child,
    dataDir,
    exited,
    output: () => output,
    ...clients(url),
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      child.kill(signal)
      return exited
    },
  }
}

/** Starts a `work` process, which does the background work and does not listen. */
export async function spawnWorker(env: Record<string, string>) {
  const child = spawn(process.execPath, ['server/src/main.ts', 'work'], {
    cwd: resolve(import.meta.dirname, '../..'),
    env: { ...hostEnv, ...testEnv, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<number | string>((resolveExit) =>
    child.once('exit', (code, signal) => resolveExit(signal ?? code ?? 0)),
  )
  await new Promise<void>((ready, reject) => {
    child.stdout.once('data', () => ready())
    exited.then((exitReason) => reject(new Error(`The worker ended (${exitReason}) before it was ready.`)))
  })
  return {
    child,
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      child.kill(signal)
      return exited
    },
  }
}

export type Payer = PrivateKeyAccount & { fetch: typeof fetch }

export function clients(url: string) {
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: 'manual',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    // biome-ignore lint/suspicious/noExplicitAny: tests assert on the response
    const json: any =
      /^application\/json\b/.test(response.headers.get('content-type') ?? '') && text ? JSON.parse(text) : undefined
    return { status: response.status, headers: response.headers, text, body: json }
  }

  const rpc = async (method: string, params: unknown[]) => {
    const { body } = await call('POST', '/api/dev/rpc', { jsonrpc: '2.0', id: 1, method, params })
    if (body.error) throw new Error(body.error.message)
    return body.result
  }

  return {
    call,
    rpc,
    get: (path: string, headers?: Record<string, string>) => call('GET', path, undefined, headers),
    post: (path: string, body: unknown, headers?: Record<string, string>) => call('POST', path, body, headers),

    /** A funded account with the official x402 client, unmodified. */
    async payer(usdc = 100): Promise<Payer> {
      const account = privateKeyToAccount(generatePrivateKey())
      if (usdc > 0) {
        const { status, text } = await call('POST', '/api/dev/faucet', { address: account.address, amount_usdc: usdc })
        if (status !== 200) throw new Error(`The faucet returned ${status}: ${text}`)
      }
      const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {
        schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }],
      })
      return Object.assign(account, { fetch: payingFetch as typeof fetch })
    },

    async balance(address: string): Promise<bigint> {
      return BigInt(
        await rpc('eth_call', [
          { to: USDC, data: `0x70a08231${address.slice(2).toLowerCase().padStart(64, '0')}` },
          'latest',
        ]),
      )
    },

    async onboard(name = 'Test Org'): Promise<{ tenantId: string; apiKey: string; headers: Record<string, string> }> {
      const { body } = await call('POST', '/api/onboard', {
        org_name: name,
        email: `${randomBytes(4).toString('hex')}@example.com`,
      })
      return { tenantId: body.tenant_id, apiKey: body.api_key, headers: { 'x-api-key': body.api_key } }
    },
  }
}

type Terms = {
  amount: string
  payTo: string
  asset: string
  network: string
  maxTimeoutSeconds: number
  extra: Record<string, unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the response
export const readJson = (response: { json(): Promise<unknown> }): Promise<any> => response.json()

/** Reads the x402 version 2 header of a 402 response. */
// biome-ignore lint/suspicious/noExplicitAny: tests assert on the header
export const readChallenge = (headers: Headers): any =>
  JSON.parse(Buffer.from(headers.get('payment-required')!, 'base64').toString())

export type SignOptions = Partial<{
  from: string
  to: string
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: string
  chainId: number
  asset: string
}>

/** Signs an EIP-3009 authorisation without the official client, so that a test can override any part of it. */
export async function signAuthorization(account: PrivateKeyAccount, terms: Terms, overrides: SignOptions = {}) {
  const authorization = {
    from: account.address,
    to: overrides.to ?? terms.payTo,
    value: (overrides.value ?? BigInt(terms.amount)).toString(),
    validAfter: (overrides.validAfter ?? 0n).toString(),
    validBefore: (overrides.validBefore ?? BigInt(Math.floor(Date.now() / 1000) + 300)).toString(),
    nonce: overrides.nonce ?? `0x${randomBytes(32).toString('hex')}`,
  }
  const signature = await account.signTypedData({
    domain: {
      name: 'USD Coin',
      version: '2',
      chainId: overrides.chainId ?? 8453,
      verifyingContract: (overrides.asset ?? terms.asset) as `0x${string}`,
    },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    } as never,
  })
  return { signature, authorization: { ...authorization, ...(overrides.from && { from: overrides.from }) } }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

/** The payment header of x402 version 2 for a challenge. */
export async function signPayment(
  account: PrivateKeyAccount,
  challenge: { accepts: Terms[]; resource?: unknown },
  overrides: SignOptions & { accepted?: Record<string, unknown> } = {},
) {
  const accepted = challenge.accepts[0]!
  const payload = await signAuthorization(account, accepted, overrides)
  return {
    'payment-signature': encode({
      x402Version: 2,
      resource: challenge.resource,
      accepted: { ...accepted, ...overrides.accepted },
      payload,
    }),
  }
}

/** The payment header of x402 version 1 for the body of a 402. */
export async function signPaymentV1(
  account: PrivateKeyAccount,
  body: { accepts: { maxAmountRequired: string; payTo: string; asset: string }[] },
  overrides: SignOptions & { network?: string } = {},
) {
  const { maxAmountRequired, payTo, asset } = body.accepts[0]!
  const payload = await signAuthorization(
    account,
    { amount: maxAmountRequired, payTo, asset, network: 'base', maxTimeoutSeconds: 300, extra: {} },
    overrides,
  )
  return { 'x-payment': encode({ x402Version: 1, scheme: 'exact', network: overrides.network ?? 'base', payload }) }
}
