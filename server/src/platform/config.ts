import { InvalidDatabaseUrl, splitDatabaseUrl } from './database-url.ts'

/**
 * All settings, for the start of the service, `/api/env-check` and `docs/settings.md`.
 * An invalid value stops the start with a message that names the variable.
 */
export type SettingGroup =
  | 'server'
  | 'admin'
  | 'database'
  | 'cache'
  | 'payments'
  | 'signing'
  | 'lanes'
  | 'governance'
  | 'brokerage'
  | 'basis'
  | 'billing'

type Setting<T> = {
  group: SettingGroup
  about: string
  parse: (anyText: string) => T
  fallback: T
  secret?: boolean
  /** Required when NODE_ENV is `production`. */
  production?: boolean
}

class InvalidValueError extends Error {}

export class ConfigError extends Error {}

const reject = (expected: string): never => {
  throw new InvalidValueError(expected)
}

const anyText = (value: string) => value

const integer = (min: number, max: number) => (value: string) => {
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < min || number > max) reject(`a whole number from ${min} to ${max}`)
  return number
}

const oneOf =
  <T extends string>(...choices: T[]) =>
  (value: string): T =>
    choices.find((choice) => choice === value) ?? reject(`one of ${choices.join(', ')}`)

const webAddress =
  (...schemes: string[]) =>
  (value: string) => {
    const url = URL.canParse(value) ? new URL(value) : undefined
    if (!url || !schemes.includes(url.protocol.slice(0, -1)))
      reject(`an address that starts with ${schemes.join('://, ')}://`)
    return value.replace(/\/+$/, '')
  }

const databaseAddress = (value: string) => {
  try {
    splitDatabaseUrl(value)
  } catch (error) {
    if (!(error instanceof InvalidDatabaseUrl)) throw error
    reject(error.message)
  }
  return value.replace(/\/+$/, '')
}

const webAddresses = (value: string) => list(value).map(webAddress('http', 'https'))

const list = (value: string) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** `approvals@example.com`, or `Countersign <approvals@example.com>`. */
const mailbox = (value: string) => {
  const match = /^(?:([^<>"\r\n]{1,100}) )?<?([^\s<>@,;"]+@[A-Za-z0-9.-]+)>?$/.exec(value.trim())
  if (!match) return reject('an e-mail address, or a name and an address in angle brackets')
  return { name: match[1]?.trim() ?? 'Countersign', address: match[2]! }
}

const securityContact = (value: string) => {
  if (!/^(https:\/\/|mailto:[^\s@]+@)[^\s@]+$/.test(value)) reject('an https address, or mailto: and an e-mail address')
  return value
}

const cellName = (value: string) => {
  if (!/^[a-z][a-z0-9]{1,7}$/.test(value)) reject('2 to 8 lower-case letters and digits, a letter first')
  return value
}

const evmAddress = (value: string) => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) reject('an EVM address: 0x and 40 hexadecimal digits')
  return value as `0x${string}`
}

const evmPrivateKeys = (value: string) => {
  const keys = value.split(',').map((part) => part.trim())
  if (keys.some((key) => !/^0x[0-9a-fA-F]{64}$/.test(key)))
    reject('one or more EVM private keys: 0x and 64 hexadecimal digits each')
  return keys as `0x${string}`[]
}

const longSecret = (minLength: number) => (value: string) => {
  if (value.length < minLength) reject(`at least ${minLength} characters`)
  return value
}

/** A secret may itself contain a comma, so the whole text counts as one too; a key that nothing was made with does no harm. */
const longSecrets = (minLength: number) => (value: string) => {
  const secrets = [...new Set([...list(value), value])].filter((secret) => secret.length >= minLength)
  if (secrets.length === 0) reject(`one or more secrets of at least ${minLength} characters each, separated by commas`)
  return secrets
}

/** The shortest secret that is accepted, from a setting or from its key file. */
export const MIN_SECRET_LENGTH = { ADMIN_KEY: 24, SIGNING_KEY: 32, ENCRYPTION_KEY: 32 } as const

const setting = <T>(row: Setting<T>) => row
const optional = <T>(row: Omit<Setting<T | undefined>, 'fallback'>): Setting<T | undefined> => ({
  ...row,
  fallback: undefined,
})

export const settings = {
  NODE_ENV: setting({
    group: 'server',
    about:
      '`production` makes the settings marked so required, and a facilitator or chain: the embedded one is for development, and its faucet and RPC are off',
    parse: oneOf('development', 'production', 'test'),
    fallback: 'development',
  }),
  PORT: setting({
    group: 'server',
    about: 'port to listen on; 0 takes a free one',
    parse: integer(0, 65535),
    fallback: 4020,
  }),
  HOST: setting({ group: 'server', about: 'address to listen on', parse: anyText, fallback: '127.0.0.1' }),
  CELL: optional({
    group: 'server',
    about:
      'name of this cell where several services serve as one ([scale.md](scale.md)): it becomes part of new API keys and of signed quotes, and keys and quotes of another cell are refused',
    parse: cellName,
  }),
  PUBLIC_URL: optional({
    group: 'server',
    about: 'address by which clients reach the service',
    parse: webAddress('http', 'https'),
  }),
  SECURITY_CONTACT: optional({
    group: 'server',
    about:
      'whom to tell about a vulnerability, in /.well-known/security.txt: an https address, or `mailto:` and an e-mail address; without it, the mailbox `security` at the host of PUBLIC_URL',
    parse: securityContact,
  }),
  COUNTERSIGN_DATA_DIR: setting({
    group: 'server',
    about: 'folder of keys and the embedded database',
    parse: anyText,
    fallback: './.countersign',
  }),
  LOG_LEVEL: setting({
    group: 'server',
    about: 'least severe log line to print',
    parse: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    fallback: 'info',
  }),
  TRUST_PROXY: optional({
    group: 'server',
    about: 'addresses or networks of your reverse proxies, separated by commas; their X-Forwarded-For is trusted',
    parse: list,
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional({
    group: 'server',
    about: 'OpenTelemetry collector that traces go to, over HTTP',
    parse: webAddress('http', 'https'),
  }),
  BACKGROUND_WORK: setting({
    group: 'server',
    about: '`off` leaves the background work of this process to `work` processes on the same database',
    parse: oneOf('on', 'off'),
    fallback: 'on',
  }),
  SHUTDOWN_SECONDS: setting({
    group: 'server',
    about:
      'after a signal to stop, how long the work under way may take; what is left then is handed over to another process or the next start. Longer than RUN_DEADLINE_SECONDS, so that runs can end',
    parse: integer(0, 3_600),
    fallback: 130,
  }),
  WORKERS: setting({
    group: 'server',
    about:
      'processes that share the port; with 2 or more, one further process does the background work (`serve --workers`)',
    parse: integer(1, 64),
    fallback: 1,
  }),
  METRICS_TOKEN: optional({
    group: 'server',
    about: 'token that GET /metrics takes as `Authorization: Bearer`',
    parse: longSecret(16),
    secret: true,
  }),
  METRICS_PORT: optional({
    group: 'server',
    about:
      'port of its own for /metrics, on HOST; the API then has none. In production the API has /metrics only with METRICS_TOKEN',
    parse: integer(0, 65535),
  }),
  RATE_LIMIT_ANON_PER_MINUTE: setting({
    group: 'server',
    about:
      'requests a minute for an address without a key; 0 is off, and so are then the limits of onboarding and of the development RPC',
    parse: integer(0, 10_000_000),
    fallback: 60,
  }),
  RATE_LIMIT_KEY_PER_MINUTE: setting({
    group: 'server',
    about: 'requests a minute for a key or a payer; 0 is off',
    parse: integer(0, 10_000_000),
    fallback: 600,
  }),
  RATE_LIMIT_ONBOARD_PER_HOUR: setting({
    group: 'server',
    about:
      'tenants that one address may make in an hour, and a fourth of what its network (/24 or /48) may make; off when RATE_LIMIT_ANON_PER_MINUTE is 0',
    parse: integer(1, 1_000_000),
    fallback: 20,
  }),
  ONBOARD_INVITATION: optional({
    group: 'server',
    about: 'code that POST /api/onboard takes in the field `invitation`; anybody may onboard when absent',
    parse: longSecret(8),
    secret: true,
  }),
  ADMIN_KEY: optional({
    group: 'admin',
    about: 'key of the administrative endpoints; generated once when absent',
    parse: longSecret(MIN_SECRET_LENGTH.ADMIN_KEY),
    secret: true,
    production: true,
  }),
  DATABASE_URL: optional({
    group: 'database',
    about:
      'your PostgreSQL; without it the embedded one runs. Several hosts, separated by commas, are nodes of one cluster, of which the primary is used: `postgres://user:password@host1:5432,host2:5432/countersign?target_session_attrs=read-write`',
    parse: databaseAddress,
    secret: true,
    production: true,
  }),
  DATABASE_DIRECT_URL: optional({
    group: 'database',
    about:
      'address of the same database without a transaction pooler, for what needs a session: LISTEN, migrations and leases; DATABASE_URL when absent',
    parse: databaseAddress,
    secret: true,
  }),
  DATABASE_SYNC_REPLICATION: optional({
    group: 'database',
    about:
      'whether a commit must wait for another server, so that a failover loses nothing that was answered: `required` uses no primary whose `synchronous_standby_names` or `synchronous_commit` say otherwise, `preferred` says so in the log and in /api/health, `off` says nothing. `required` in production, `preferred` elsewhere',
    parse: oneOf('required', 'preferred', 'off'),
  }),
  DATABASE_POOL: setting({
    group: 'database',
    about: 'connections a process keeps',
    parse: integer(3, 200),
    fallback: 10,
  }),
  DATABASE_STATEMENT_TIMEOUT_MS: setting({
    group: 'database',
    about: 'longest run time of one statement; migrations are exempt',
    parse: integer(1_000, 600_000),
    fallback: 30_000,
  }),
  DATABASE_LOCK_TIMEOUT_MS: setting({
    group: 'database',
    about: 'longest wait of a statement for a lock; the caller then gets a 503; migrations are exempt',
    parse: integer(100, 600_000),
    fallback: 20_000,
  }),
  INSTANCE_BEAT_MS: setting({
    group: 'database',
    about: 'how often a process writes its beat, by which the others see that it is alive; the same for all processes',
    parse: integer(50, 10_000),
    fallback: 2_000,
  }),
  INSTANCE_GRACE_MS: setting({
    group: 'database',
    about:
      'how long a beat must stand still before others take over the runs of its process, at least four beats; the same for all processes',
    parse: integer(200, 120_000),
    fallback: 8_000,
  }),
  MAX_RUNS_UNDER_WAY: setting({
    group: 'server',
    about:
      'runs, loops and other requests that wait for a lane, a chain or a broker, under way in a process; one tenant, or one address without a key, gets at most half of them, 1,024 more of it wait, and the next gets 503',
    parse: integer(2, 100_000),
    fallback: 512,
  }),
  REDIS_URL: optional({
    group: 'cache',
    about: 'Redis for rate limits shared between processes',
    parse: webAddress('redis', 'rediss'),
    secret: true,
  }),
  PAY_TO_ADDRESS: optional({
    group: 'payments',
    about: 'address that receives x402 payments; generated once with the embedded chain',
    parse: evmAddress,
    production: true,
  }),
  FACILITATOR_URL: optional({
    group: 'payments',
    about:
      'x402 facilitators, in order of preference, separated by commas; required in production unless CHAIN_RPC_URL and FACILITATOR_PRIVATE_KEY are set',
    parse: webAddresses,
  }),
  CHAIN_RPC_URL: optional({
    group: 'payments',
    about: 'JSON-RPC of a real chain, which the reconciler queries',
    parse: webAddress('http', 'https'),
    secret: true,
  }),
  FACILITATOR_PRIVATE_KEY: optional({
    group: 'payments',
    about: 'keys that settle on CHAIN_RPC_URL, separated by commas',
    parse: evmPrivateKeys,
    secret: true,
  }),
  EIP6492_FACTORIES: setting({
    group: 'payments',
    about:
      'contracts, separated by commas, that may deploy the wallet of a payer whose signature comes before it exists (EIP-6492); our account sends that deployment, so none is allowed unless it is named',
    parse: (value) => list(value).map(evmAddress),
    fallback: [],
  }),
  RUN_DEADLINE_SECONDS: setting({
    group: 'payments',
    about: 'how long a lane may work on a run',
    parse: integer(1, 120),
    fallback: 120,
  }),
  RUN_RETENTION_DAYS: setting({
    group: 'payments',
    about:
      'for how many days an ended run is kept, in whole months; 0 keeps all. Receipts, ledger and log stay, and so do the nonce, request hash and answer of an x402 payment',
    parse: integer(0, 36_500),
    fallback: 0,
  }),
  PAYER_EXPOSURE_USDC: setting({
    group: 'payments',
    about: 'highest amount that one payer may have verified and not yet settled',
    parse: integer(1, 1_000_000),
    fallback: 100,
  }),
  SIGNING_KEY: optional({
    group: 'signing',
    about: 'secret that the signing keys derive from; generated once when absent',
    parse: longSecret(MIN_SECRET_LENGTH.SIGNING_KEY),
    secret: true,
    production: true,
  }),
  ENCRYPTION_KEY: optional({
    group: 'signing',
    about: 'secret that data at rest is encrypted with; generated once when absent',
    parse: longSecret(MIN_SECRET_LENGTH.ENCRYPTION_KEY),
    secret: true,
    production: true,
  }),
  ENCRYPTION_KEY_PREVIOUS: optional({
    group: 'signing',
    about:
      'earlier encryption keys, separated by commas: what they have encrypted can be read, and is encrypted again with ENCRYPTION_KEY in the background; `/api/env-check` says when they can be left out',
    parse: longSecrets(MIN_SECRET_LENGTH.ENCRYPTION_KEY),
    secret: true,
  }),
  SIGNING_KEY_PREVIOUS: optional({
    group: 'signing',
    about:
      'the previous signing key: checkpoints of the log are signed with both while verifiers change over, and issued tokens stay valid',
    parse: longSecret(32),
    secret: true,
  }),
  LOG_NAME: setting({
    group: 'signing',
    about: 'name of the public log; it is permanent, because another name is another log',
    parse: anyText,
    fallback: 'countersign.local/log',
  }),
  LOG_WITNESSES: optional({
    group: 'signing',
    about: 'verifier keys of the witnesses whose cosignatures are accepted, separated by commas',
    parse: list,
  }),
  LOG_POLICY: optional({
    group: 'signing',
    about:
      'path of a C2SP tlog-policy file: each checkpoint is sent to its witnesses that have an address, and `?witnessed=true` shows the newest checkpoint with its quorum',
    parse: anyText,
  }),
  LANE_PROVIDER: setting({
    group: 'lanes',
    about: 'provider that does the work; `offline` needs no other setting',
    parse: oneOf('offline', 'openai-compatible', 'anthropic'),
    fallback: 'offline',
  }),
  LANE_BASE_URL: optional({
    group: 'lanes',
    about: 'address of an OpenAI-compatible server or of Anthropic',
    parse: webAddress('http', 'https'),
  }),
  LANE_API_KEY: optional({ group: 'lanes', about: 'key of the lane provider', parse: anyText, secret: true }),
  LANE_MODEL: optional({ group: 'lanes', about: 'model of every lane that is not in LANE_MODELS', parse: anyText }),
  LANE_MODELS: optional({
    group: 'lanes',
    about: 'models of single lanes, as `coder-v1=model,writer-v1=model`',
    parse: list,
  }),
  LANE_USD_PER_MILLION_INPUT: optional({
    group: 'lanes',
    about: 'cost of a million input tokens',
    parse: anyText,
  }),
  LANE_USD_PER_MILLION_OUTPUT: optional({
    group: 'lanes',
    about: 'cost of a million output tokens',
    parse: anyText,
  }),
  LANE_FALLBACK_PROVIDER: optional({
    group: 'lanes',
    about: 'provider that is used when the first one fails',
    parse: oneOf('openai-compatible', 'anthropic'),
  }),
  LANE_FALLBACK_BASE_URL: optional({
    group: 'lanes',
    about: 'address of the fallback',
    parse: webAddress('http', 'https'),
  }),
  LANE_FALLBACK_API_KEY: optional({ group: 'lanes', about: 'key of the fallback', parse: anyText, secret: true }),
  LANE_FALLBACK_MODEL: optional({ group: 'lanes', about: 'model of the fallback', parse: anyText }),
  LANE_TIMEOUT_MS: optional({
    group: 'lanes',
    about: 'one attempt at a provider, from request to last token',
    parse: integer(100, 110_000),
  }),
  LANE_STALL_MS: optional({
    group: 'lanes',
    about: 'longest pause between tokens within an attempt',
    parse: integer(100, 110_000),
  }),
  LANE_RETRIES: optional({ group: 'lanes', about: 'further attempts at the same provider', parse: integer(0, 5) }),
  LANE_MAX_OUTPUT_TOKENS: optional({
    group: 'lanes',
    about: 'output limit of all lanes, instead of their own limits',
    parse: integer(1, 32_000),
  }),
  BENCHMARK_SUITE: setting({
    group: 'lanes',
    about:
      'whether the benchmark suite runs by itself at the first start and after a change of model or lane version: `on`, `offline` (only while no model is configured) or `off`. With a paid model it is 80 short tasks',
    parse: oneOf('on', 'offline', 'off'),
    fallback: 'on',
  }),
  BENCHMARK_MAX_USD: setting({
    group: 'lanes',
    about:
      'a benchmark that runs by itself starts no further task once its tokens have cost this much, at the prices of LANE_USD_PER_MILLION_INPUT and LANE_USD_PER_MILLION_OUTPUT',
    parse: integer(0, 1_000),
    fallback: 2,
  }),
  JUDGE_PROVIDER: optional({
    group: 'lanes',
    about: "provider of the judge that looks at the work of models; by default the lanes' own, `off` asks none",
    parse: oneOf('off', 'openai-compatible', 'anthropic'),
  }),
  JUDGE_BASE_URL: optional({
    group: 'lanes',
    about: 'address of the judge, when JUDGE_PROVIDER is set',
    parse: webAddress('http', 'https'),
  }),
  JUDGE_API_KEY: optional({ group: 'lanes', about: 'key of the judge', parse: anyText, secret: true }),
  JUDGE_MODEL: optional({ group: 'lanes', about: 'model of the judge; by default LANE_MODEL', parse: anyText }),
  JUDGE_USD_PER_MILLION_INPUT: optional({
    group: 'lanes',
    about: "cost of a million input tokens of a judge that is not the lanes' own provider",
    parse: anyText,
  }),
  JUDGE_USD_PER_MILLION_OUTPUT: optional({
    group: 'lanes',
    about: "cost of a million output tokens of a judge that is not the lanes' own provider",
    parse: anyText,
  }),
  JUDGE_TIMEOUT_MS: setting({
    group: 'lanes',
    about: 'how long a judge may take; a later answer decides nothing',
    parse: integer(100, 60_000),
    fallback: 20_000,
  }),
  PREAUTH_CLOSE_SECONDS: setting({
    group: 'governance',
    about: 'a pre-authorisation that is not closed within this time is escalated',
    parse: integer(1, 86_400),
    fallback: 600,
  }),
  APPROVAL_CONTENT_DAYS: setting({
    group: 'governance',
    about:
      'for how many days after an approval ended its request (the task, the terms) is kept, encrypted; 0 deletes it within minutes',
    parse: integer(0, 3_650),
    fallback: 30,
  }),
  AUDIT_WAIT_MS: setting({
    group: 'governance',
    about: 'how long an answer that a policy wants on the record waits for its audit event, before it is a 503',
    parse: integer(100, 30_000),
    fallback: 5_000,
  }),
  APPROVAL_WINDOW_SECONDS: setting({
    group: 'governance',
    about: 'how long an approval waits for a decision',
    parse: integer(1, 2_592_000),
    fallback: 86_400,
  }),
  APPROVAL_LINK_SECONDS: optional({
    group: 'governance',
    about: 'how long the link in a message about an approval works; as long as the approval waits when absent',
    parse: integer(60, 2_592_000),
  }),
  SMTP_URL: optional({
    group: 'governance',
    about:
      'mail server for approvals by e-mail, as `smtps://user:password@host` or `smtp://user:password@host:587`; `smtp` to another machine asks for STARTTLS unless the address ends with `?ignoreTLS=true`',
    parse: webAddress('smtp', 'smtps'),
    secret: true,
  }),
  SMTP_FROM: optional({
    group: 'governance',
    about: 'sender of approvals by e-mail, as `Countersign <approvals@example.com>`; required with SMTP_URL',
    parse: mailbox,
  }),
  RH_APPROVAL_WINDOW_SECONDS: optional({
    group: 'brokerage',
    about: 'approval window of brokerage runs; by instrument when absent',
    parse: integer(1, 2_592_000),
  }),
  RH_OAUTH_CLIENT_ID: optional({ group: 'brokerage', about: 'OAuth client', parse: anyText }),
  RH_OAUTH_CLIENT_SECRET: optional({ group: 'brokerage', about: 'OAuth client secret', parse: anyText, secret: true }),
  RH_OAUTH_REDIRECT_URI: optional({
    group: 'brokerage',
    about: 'redirect address that the broker sends the user back to',
    parse: webAddress('http', 'https'),
  }),
  RH_OAUTH_AUTHORIZE_URL: optional({
    group: 'brokerage',
    about: 'authorisation address',
    parse: webAddress('http', 'https'),
  }),
  RH_OAUTH_TOKEN_URL: optional({ group: 'brokerage', about: 'token address', parse: webAddress('http', 'https') }),
  RH_OAUTH_SCOPE: optional({ group: 'brokerage', about: 'requested scope', parse: anyText }),
  RH_OAUTH_MODE: setting({
    group: 'brokerage',
    about: '`scaffold` as the API specifies, or `strict`',
    parse: oneOf('scaffold', 'strict'),
    fallback: 'scaffold',
  }),
  BROKER_TENANTS: optional({
    group: 'brokerage',
    about: 'tenants that trade through the real brokers below, separated by commas; all others trade on paper',
    parse: list,
  }),
  ROBINHOOD_API_KEY: optional({ group: 'brokerage', about: 'Robinhood crypto key', parse: anyText, secret: true }),
  ROBINHOOD_PRIVATE_KEY: optional({
    group: 'brokerage',
    about: 'Robinhood crypto signing key',
    parse: anyText,
    secret: true,
  }),
  ROBINHOOD_URL: optional({
    group: 'brokerage',
    about: 'address of the Robinhood API, to override the default',
    parse: webAddress('http', 'https'),
  }),
  COINBASE_KEY_NAME: optional({ group: 'brokerage', about: 'Coinbase Advanced Trade key name', parse: anyText }),
  COINBASE_PRIVATE_KEY: optional({ group: 'brokerage', about: 'Coinbase signing key', parse: anyText, secret: true }),
  COINBASE_URL: optional({
    group: 'brokerage',
    about: 'address of the Coinbase API, to override the default',
    parse: webAddress('http', 'https'),
  }),
  BASIS_COVERAGE_FILE: optional({ group: 'basis', about: 'path of your own coverage list', parse: anyText }),
  PYTH_HERMES_URL: optional({ group: 'basis', about: 'Pyth Hermes', parse: webAddress('http', 'https') }),
  PYTH_API_KEY: optional({ group: 'basis', about: 'key for Pyth Hermes', parse: anyText, secret: true }),
  BASE_RPC_URL: optional({
    group: 'basis',
    about: 'a node of Base: feeds, pools, supply and mints',
    parse: webAddress('http', 'https'),
    secret: true,
  }),
  XSTOCKS_API_URL: optional({ group: 'basis', about: 'the xStocks public API', parse: webAddress('http', 'https') }),
  COINBASE_STOCKS_URL: optional({
    group: 'basis',
    about: 'Coinbase’s list of tokenised stocks',
    parse: webAddress('http', 'https'),
  }),
  SOLANA_RPC_URL: optional({
    group: 'basis',
    about: 'a node of Solana: mint supply and multiplier',
    parse: webAddress('http', 'https'),
    secret: true,
  }),
  JUPITER_API_URL: optional({ group: 'basis', about: 'Jupiter prices', parse: webAddress('http', 'https') }),
  JUPITER_API_KEY: optional({ group: 'basis', about: 'key for Jupiter', parse: anyText, secret: true }),
  ALPACA_DATA_URL: optional({ group: 'basis', about: 'Alpaca market data', parse: webAddress('http', 'https') }),
  ALPACA_TRADING_URL: optional({
    group: 'basis',
    about: 'Alpaca clock and calendar',
    parse: webAddress('http', 'https'),
  }),
  ALPACA_KEY_ID: optional({ group: 'basis', about: 'Alpaca key id', parse: anyText }),
  ALPACA_SECRET_KEY: optional({ group: 'basis', about: 'Alpaca secret key', parse: anyText, secret: true }),
  STRIPE_SECRET_KEY: optional({
    group: 'billing',
    about: 'Stripe key; without it the billing portal is off',
    parse: anyText,
    secret: true,
  }),
  STRIPE_API_URL: optional({
    group: 'billing',
    about: 'address of the Stripe API, to override the default',
    parse: webAddress('http', 'https'),
  }),
}

export type SettingName = keyof typeof settings
export type Config = {
  [K in SettingName]: ReturnType<(typeof settings)[K]['parse']> | (typeof settings)[K]['fallback']
} & {
  /** The settings the operator provided, in contrast to defaults and generated secrets. */
  provided: ReadonlySet<SettingName>
}

export const settingNames = Object.keys(settings) as SettingName[]

export function readConfig(env: Record<string, string | undefined>): Config {
  const provided = new Set<SettingName>()
  const values: Record<string, unknown> = {}
  for (const name of settingNames) {
    const row: Setting<unknown> = settings[name]
    const value = env[name]?.trim()
    if (value === undefined || value === '') {
      values[name] = row.fallback
      continue
    }
    provided.add(name)
    values[name] = parseSetting(name, row, value)
  }
  const config = { ...values, provided } as unknown as Config
  checkCombinations(config)
  return config
}

function parseSetting(name: SettingName, row: Setting<unknown>, value: string): unknown {
  try {
    return row.parse(value)
  } catch (error) {
    if (!(error instanceof InvalidValueError)) throw error
    const quotedValue = row.secret ? '' : ` '${value.slice(0, 80)}'`
    throw new ConfigError(`${name}${quotedValue} is not usable: it must be ${error.message}.`)
  }
}

function checkCombinations(config: Config) {
  if (config.FACILITATOR_PRIVATE_KEY && !config.CHAIN_RPC_URL)
    throw new ConfigError('FACILITATOR_PRIVATE_KEY is set without CHAIN_RPC_URL: it needs a chain to settle on.')
  if (config.CHAIN_RPC_URL && !config.FACILITATOR_PRIVATE_KEY && !config.FACILITATOR_URL)
    throw new ConfigError(
      'CHAIN_RPC_URL is set without FACILITATOR_PRIVATE_KEY or FACILITATOR_URL: nothing would settle payments.',
    )
  if ((config.FACILITATOR_URL || config.CHAIN_RPC_URL) && !config.PAY_TO_ADDRESS)
    throw new ConfigError(
      'PAY_TO_ADDRESS is missing: with a real facilitator or chain it must name the address that receives payments.',
    )
  if (config.DATABASE_DIRECT_URL && !config.DATABASE_URL)
    throw new ConfigError('DATABASE_DIRECT_URL is set without DATABASE_URL: both must lead to one database.')
  if (config.INSTANCE_GRACE_MS < 4 * config.INSTANCE_BEAT_MS)
    throw new ConfigError('INSTANCE_GRACE_MS is too short: it must be at least four times INSTANCE_BEAT_MS.')
  if (Boolean(config.SMTP_URL) !== Boolean(config.SMTP_FROM))
    throw new ConfigError('SMTP_URL and SMTP_FROM belong together, and one of them is missing.')
  if (config.LANE_PROVIDER !== 'offline' && !config.LANE_MODEL)
    throw new ConfigError(`LANE_MODEL is missing: LANE_PROVIDER '${config.LANE_PROVIDER}' needs a model name.`)
  if (config.LANE_PROVIDER === 'openai-compatible' && !config.LANE_BASE_URL)
    throw new ConfigError("LANE_BASE_URL is missing: LANE_PROVIDER 'openai-compatible' needs an address.")
}

/**
 * Stops a start in production that would make keys of its own or take payments on the embedded chain. In the settings
 * that it returns, a commit must wait for another server unless the operator has said otherwise.
 */
export function requireProductionSettings(config: Config): Config {
  if (config.NODE_ENV !== 'production') return config
  const missing: string[] = settingNames.filter(
    (name) => (settings[name] as Setting<unknown>).production && !config.provided.has(name),
  )
  if (usesEmbeddedChain(config)) missing.push('FACILITATOR_URL (or CHAIN_RPC_URL with FACILITATOR_PRIVATE_KEY)')
  if (missing.length > 0)
    throw new ConfigError(`NODE_ENV is production, and these settings are missing: ${missing.join(', ')}.`)
  return { ...config, DATABASE_SYNC_REPLICATION: config.DATABASE_SYNC_REPLICATION ?? 'required' }
}

/** Payments run on the embedded chain unless the operator named a facilitator or a chain. */
export const usesEmbeddedChain = (config: Config) => !config.FACILITATOR_URL && !config.CHAIN_RPC_URL
