import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CheckpointKey,
  formatVerifierKey,
  fromBase64,
  isTreeEdge,
  type Jwks,
  NOTE_ED25519,
  parseCheckpoint,
  publicKeyBytes,
  toBase64,
} from '@countersign/proof'
import { Command } from 'commander'
import { wholeNumber } from '../arguments.ts'
import { CliError, EXIT } from '../cli-error.ts'
import { readIfPresent, writeDurably } from '../durable-file.ts'
import { fetchJson, isObject, readKeySet, readPolicyFile } from '../evidence.ts'
import { checkLog, type Finding, type LogReader, type MonitorReport, type MonitorState } from '../log-monitor.ts'
import { safeText } from '../output.ts'

type Options = {
  state?: string
  policy?: string
  jwks?: string
  interval: number
  lag: number
  once?: boolean
  keys?: boolean
  json?: boolean
}

const FETCH_MS = 15_000
/** 256 entries of the largest size, each after its length. */
const MAX_RESPONSE_BYTES = 256 * (65_535 + 2)
const MAX_WAIT_MS = 60_000
const MAX_ATTEMPTS = 5

export const monitorCommand = () =>
  new Command('monitor')
    .description('Follow a log: signatures, consistency, every entry and the cosignatures of a policy')
    .argument('<url>', 'address of a service, or of any log after C2SP tlog-tiles')
    .option('--state <folder>', 'what was seen last, and evidence; required unless --keys is given')
    .option('--policy <file>', 'a tlog-policy file: the keys of the log and the witnesses that must have cosigned')
    .option('--jwks <file>', 'the key set you trust, for a policy without logs, or without a policy')
    .option('--interval <seconds>', 'how often to look', wholeNumber, 10)
    .option('--lag <seconds>', 'how long a tree may be without a quorum', wholeNumber, 60)
    .option('--once', 'look once')
    .option('--keys', 'print the verifier keys of the log as the service states them, and end')
    .option('--json', 'print one JSON object a look')
    .action(async (url: string, options: Options) => {
      if (options.keys) return printKeys(url)
      if (options.state === undefined) throw new CliError('Say with --state where to keep what was seen.')
      const folder = resolve(options.state)
      for (;;) {
        const isBroken = await look(url, folder, options)
        if (options.once || isBroken) {
          process.exitCode = isBroken ? EXIT.no : EXIT.done
          return
        }
        await sleep(options.interval * 1000)
      }
    })

/** True when the log or its quorum failed a check. After a fork or a rollback there is nothing left to follow. */
async function look(url: string, folder: string, options: Options): Promise<boolean> {
  const statePath = join(folder, 'monitor.json')
  const stored = readState(statePath)
  const policy = options.policy === undefined ? undefined : readPolicyFile(options.policy)
  const needsKeys = (policy?.logs.length ?? 0) === 0
  const keys = needsKeys ? await readKeys(url, options, stored?.keys) : undefined
  let report: MonitorReport
  try {
    report = await checkLog({
      read: httpReader(url),
      policy,
      keys,
      state: stored?.state,
      now: new Date(),
      maxLagSeconds: options.lag,
    })
  } catch (error) {
    if (options.once) throw new CliError(`${url} cannot be followed: ${(error as Error).message}`)
    console.error(`${url} cannot be followed and is asked again: ${(error as Error).message}`)
    return false
  }
  const evidenceFiles = report.findings.map((finding) => keepEvidence(folder, finding))
  if (report.state) writeDurably(statePath, serializeState(url, report.state, keys))
  const isFailed = report.findings.some(({ severity }) => severity === 'failure')
  const isEnd = report.findings.some(({ kind }) => kind === 'fork' || kind === 'rollback')
  console.log(options.json ? JSON.stringify(toJson(report, evidenceFiles)) : formatReport(report, evidenceFiles))
  return options.once ? isFailed : isEnd
}

function keepEvidence(folder: string, { kind, evidence }: Finding): string | null {
  if (!evidence) return null
  const hash = createHash('sha256').update(evidence.checkpoints.join()).digest('hex').slice(0, 16)
  const path = join(folder, `evidence-${kind}-${hash}.json`)
  if (readIfPresent(path) === undefined) writeDurably(path, `${JSON.stringify(evidence, null, 2)}\n`)
  return path
}

const toJson = ({ findings, size, cosignedSize, newEntries }: MonitorReport, files: (string | null)[]) => ({
  at: new Date().toISOString(),
  ok: !findings.some(({ severity }) => severity === 'failure'),
  size: size ?? null,
  cosigned_size: cosignedSize ?? null,
  new_entries: newEntries,
  findings: findings.map(({ kind, severity, message }, place) => ({ kind, severity, message, evidence: files[place] })),
})

function formatReport({ findings, size, cosignedSize, newEntries }: MonitorReport, files: (string | null)[]): string {
  const cosigned = cosignedSize === undefined ? '' : `, cosigned at ${cosignedSize}`
  const summary = `${new Date().toISOString()}  ${size ?? '–'} entries, ${newEntries} new${cosigned}`
  const lines = findings.map(
    ({ severity, message }, place) =>
      `  ${severity === 'failure' ? 'FAILED ' : 'warning'}  ${safeText(message)}${files[place] ? ` Evidence: ${files[place]}` : ''}`,
  )
  return [summary, ...lines].join('\n')
}

/** A service has its log under /api/log; an address with a path is the log itself. */
const logPrefix = (url: string): string => {
  if (!URL.canParse(url)) throw new CliError(`${url} is not an address.`)
  const { pathname } = new URL(url)
  return pathname === '/' ? new URL('/api/log', url).href : url.replace(/\/+$/, '')
}

function httpReader(url: string): LogReader {
  const prefix = logPrefix(url)
  return async (path) => {
    for (let attempt = 1; ; attempt += 1) {
      const response = await fetch(`${prefix}/${path}`, { signal: AbortSignal.timeout(FETCH_MS) })
      if (response.ok) return readLimited(response)
      await response.body?.cancel()
      if (response.status === 404 || response.status === 410) return undefined
      const isPassing = response.status === 429 || response.status >= 500
      if (!isPassing || attempt >= MAX_ATTEMPTS) throw new Error(`${path} answered ${response.status}.`)
      const seconds = Number(response.headers.get('retry-after')) || attempt
      await sleep(Math.min(seconds * 1000, MAX_WAIT_MS))
    }
  }
}

async function readLimited(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > MAX_RESPONSE_BYTES) throw new Error('The answer is too large.')
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/** The keys of the log: those that are pinned, else those of the first look. */
async function readKeys(url: string, { jwks }: Options, stored: Jwks | undefined): Promise<CheckpointKey[]> {
  const set = jwks === undefined ? (stored ?? (await fetchKeySet(url))) : readKeySet(jwks)
  return set.keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')
}

async function fetchKeySet(url: string): Promise<Jwks> {
  console.error(
    'The keys come from the service itself: pin them with --policy or --jwks to follow it without trusting it.',
  )
  const set = await fetchJson(new URL('/.well-known/jwks.json', url).href)
  if (!isObject(set) || !Array.isArray(set.keys)) throw new CliError(`${url} has no key set.`)
  return set as unknown as Jwks
}

async function printKeys(url: string) {
  const bytes = await httpReader(url)('checkpoint')
  const origin = parseCheckpoint(bytes && new TextDecoder().decode(bytes))?.origin
  if (origin === undefined) throw new CliError(`${url} shows no checkpoint.`)
  const { keys } = (await fetchJson(new URL('/.well-known/jwks.json', url).href)) as Jwks
  for (const key of keys.filter(({ purpose }) => purpose === 'log')) {
    const publicKey = publicKeyBytes(key)
    if (publicKey) console.log(formatVerifierKey({ name: origin, type: NOTE_ED25519, publicKey }))
  }
}

const STATE_SCHEMA = 'log-monitor/v1'

function serializeState(
  url: string,
  { edge, ...state }: MonitorState,
  keys: readonly CheckpointKey[] | undefined,
): string {
  const stored = {
    schema: STATE_SCHEMA,
    url,
    ...state,
    edge: { size: edge.size, hashes: edge.hashes.map(toBase64) },
    ...(keys && { keys }),
  }
  return `${JSON.stringify(stored, null, 2)}\n`
}

/** A damaged state is an error: a monitor that begins again would forget what it has seen. */
function readState(path: string): { state: MonitorState; keys?: Jwks } | undefined {
  const text = readIfPresent(path)
  if (text === undefined) return undefined
  try {
    const { schema, url: _, keys, edge, ...state } = JSON.parse(text)
    const hashes = edge.hashes.map(fromBase64)
    const isWhole =
      schema === STATE_SCHEMA && isTreeEdge({ size: edge.size, hashes }) && parseCheckpoint(state.checkpoint)
    if (isWhole) return { state: { ...state, edge: { size: edge.size, hashes } }, ...(keys && { keys: { keys } }) }
  } catch {
    // Reported below.
  }
  throw new CliError(`${path} is damaged: move it away to begin again.`)
}
