import { existsSync } from 'node:fs'
import {
  type Check,
  type CheckpointKey,
  type Jwks,
  type LogPolicy,
  type Opening,
  type Verification,
  verifyAttestation,
  verifyAuditExport,
  verifyLogEvidence,
  verifyLogPolicy,
  verifyReceipt,
  verifyReceiptChain,
  verifyReceiptProof,
} from '@countersign/proof'
import { Command } from 'commander'
import { wholeNumber } from '../arguments.ts'
import { checkMemory, readCheckpoints } from '../checkpoint-file.ts'
import {
  type Evidence,
  fetchJson,
  isObject,
  type JsonObject,
  readEvidence,
  readJson,
  readKeySet,
  readPolicyFile,
  UnreadableEvidenceError,
} from '../evidence.ts'
import { dataFolder } from '../service.ts'

type Options = {
  jwks?: string
  url?: string
  previous?: string
  opening?: string
  origin?: string
  requireLog?: boolean
  witness?: string[]
  quorum?: number
  head?: string
  after?: string
  live?: boolean
  fresh?: boolean
  json?: boolean
  policy?: string
  maxAge?: number
  receipt?: string
  state?: string
  memory?: boolean
}

export const verifyCommand = () =>
  new Command('verify')
    .description(
      'Verify receipts, attestations, audit exports, tlog-proofs and evidence against a log, without trusting the service',
    )
    .argument('<evidence>', 'a file of one of these; or the address or id of a receipt')
    .option('--jwks <file>', 'the key set you trust, as saved from /.well-known/jwks.json')
    .option(
      '--url <address>',
      'the service to fetch the receipt from, and its keys when --jwks is not given; else COUNTERSIGN_URL',
    )
    .option('--previous <file>', 'the previous receipt of the same run')
    .option('--opening <file>', 'what is disclosed: {"salt", "input", "output", "request", "counters"}, each optional')
    .option('--origin <name>', 'name of the log that must contain the receipt or attestation')
    .option('--require-log', 'fail when the receipt or attestation has no inclusion proof')
    .option('--witness <key...>', 'verifier keys of witnesses that must have cosigned the log')
    .option('--quorum <count>', 'how many witnesses must have cosigned', (text) => parseQuorum(text))
    .option('--policy <file>', 'a tlog-policy file: the keys of the log and the witnesses that must have cosigned it')
    .option('--max-age <seconds>', 'how old a cosignature may be to count', wholeNumber)
    .option('--receipt <file>', 'for a tlog-proof: the receipt that it must be about')
    .option(
      '--state <folder>',
      'where the newest checkpoint of each log is remembered; of files only when this is given',
    )
    .option('--no-memory', 'neither compare the log with what was seen of it before nor remember it')
    .option('--head <file>', 'for an audit export: a trusted head, such as an audit_head receipt')
    .option('--after <file>', 'for an audit export that does not start at the first event: the event before it')
    .option('--live', 'for an attestation: reject previews')
    .option('--fresh', 'for an attestation: reject expired ones')
    .option('--json', 'print the result as JSON')
    .action(async (evidence: string, options: Options) => {
      const result = await verify(evidence, options)
      console.log(options.json ? JSON.stringify(result, null, 2) : formatVerification(result))
      process.exitCode = result.ok ? 0 : 1
    })

export async function verify(target: string, given: Options): Promise<Verification> {
  const isFile = existsSync(target)
  const address = isFile ? undefined : readReceiptAddress(target)
  // An address names the service too; a key set that is given still decides which keys are trusted.
  const options = { ...given, url: given.url ?? address?.origin ?? process.env.COUNTERSIGN_URL }
  const policy = options.policy === undefined ? undefined : readPolicyFile(options.policy)
  const memoryFolder = options.memory === false ? undefined : (options.state ?? (isFile ? undefined : dataFolder()))
  const before = memoryFolder === undefined || isFile ? undefined : readCheckpoints(memoryFolder)
  const evidence = isFile ? readEvidence(target) : await fetchReceipt(address?.id ?? target, options.url)
  if (evidence.kind === 'audit') return verifyAudit(evidence.lines, options)
  if (evidence.kind === 'tlog-proof') return verifyProofFile(evidence.text, policy, options)
  if (evidence.kind === 'log-evidence') {
    const keys = policy ? undefined : logKeys(await readKeys(options))
    return verifyLogEvidence(evidence.evidence, { keys, policy })
  }
  const jwks = await readKeys(options)
  const log = readLogRequirements(options)
  if (evidence.kind === 'attestation') {
    const now = options.fresh ? new Date() : undefined
    return verifyAttestation(evidence.attestation, { jwks, requireLive: options.live, now, log })
  }
  if (evidence.kind === 'receipts') return verifyReceiptChain(evidence.receipts, { jwks, log, now: new Date() })
  const previous = options.previous === undefined ? undefined : readJson(options.previous)
  const opening = options.opening === undefined ? evidence.opening : (readJson(options.opening) as Opening)
  const verification = verifyReceipt(evidence.receipt, { jwks, log, previous, opening, now: new Date() })
  const place = readPlace(evidence.receipt)
  const checks = [
    ...verification.checks,
    ...(policy ? [checkPolicy(place, policy, jwks, options)] : []),
    ...(place && memoryFolder !== undefined
      ? await checkMemory(place, { folder: memoryFolder, jwks, url: options.url, before })
      : []),
  ]
  return { ...verification, ok: verification.ok && checks.every(({ ok }) => ok !== false), checks }
}

async function verifyProofFile(text: string, policy: LogPolicy | undefined, options: Options): Promise<Verification> {
  if (!policy) throw new UnreadableEvidenceError('Give the policy you trust with --policy.')
  const { receipt: _, ...verification } = verifyReceiptProof(text, {
    policy,
    origin: options.origin,
    now: new Date(),
    maxAgeSeconds: options.maxAge,
    jwks: options.jwks === undefined ? undefined : readKeySet(options.jwks),
    receipt: options.receipt === undefined ? undefined : readJson(options.receipt),
    // A policy may leave the log to the key set.
    keys: options.jwks === undefined ? [] : logKeys(readKeySet(options.jwks)),
  })
  return verification
}

/** The checkpoint of a receipt against a policy. */
function checkPolicy(
  place: { checkpoint: string } | undefined,
  policy: LogPolicy,
  jwks: Jwks,
  options: Options,
): Check {
  if (!place) return { name: 'quorum', ok: false, reason: 'The receipt is not in the log yet.' }
  const { ok, reason } = verifyLogPolicy(place.checkpoint, {
    policy,
    keys: logKeys(jwks),
    now: new Date(),
    maxAgeSeconds: options.maxAge,
  })
  return { name: 'quorum', ok, reason }
}

const logKeys = ({ keys }: Jwks): CheckpointKey[] =>
  keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')

function readPlace({ log }: JsonObject): { origin: string; checkpoint: string } | undefined {
  if (!isObject(log) || typeof log.origin !== 'string' || typeof log.checkpoint !== 'string') return undefined
  return { origin: log.origin, checkpoint: log.checkpoint }
}

/** A witness cosigns the log, so asking for one requires that the receipt is in the log. */
const readLogRequirements = ({ origin, requireLog, witness: witnesses, quorum }: Options) => ({
  origin,
  required: requireLog || witnesses !== undefined,
  witnesses,
  quorum,
})

/** `https://…/api/receipts/rcpt_1`, or a page whose address ends with the id of the receipt. */
function readReceiptAddress(target: string): { origin: string; id: string } | undefined {
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return undefined
  const { origin, pathname, hash } = new URL(target)
  const id = [hash, pathname].map((part) => part.split('/').at(-1)).find((part) => part?.startsWith('rcpt_'))
  if (!id) throw new UnreadableEvidenceError(`${target} does not end with the id of a receipt.`)
  return { origin, id }
}

async function fetchReceipt(id: string, url: string | undefined): Promise<Evidence> {
  if (!/^[\w-]{8,100}$/.test(id)) throw new UnreadableEvidenceError(`There is no file ${id}.`)
  if (url === undefined)
    throw new UnreadableEvidenceError(
      `There is no file ${id}. If it is the id of a receipt, give the service with --url.`,
    )
  const receipt = await fetchJson(`${url.replace(/\/+$/, '')}/api/receipts/${id}`)
  if (!isObject(receipt) || receipt.receipt_id !== id)
    throw new UnreadableEvidenceError('The service returned a different receipt.')
  return { kind: 'receipt', receipt }
}

async function readKeys({ jwks, url }: Options): Promise<Jwks> {
  if (jwks !== undefined) return readKeySet(jwks)
  if (url === undefined) throw new UnreadableEvidenceError('Give the key set you trust with --jwks.')
  console.error('The keys come from the service itself: pin them with --jwks to verify without trusting it.')
  return (await fetchJson(`${url.replace(/\/+$/, '')}/.well-known/jwks.json`)) as Jwks
}

/** Verifies the hash chain, and, when the head is a receipt, also that receipt. */
async function verifyAudit(lines: Iterable<string>, options: Options): Promise<Verification> {
  const after = options.after === undefined ? undefined : parseChainPosition(readJson(options.after), options.after)
  const headValue = options.head === undefined ? undefined : readJson(options.head)
  const receipt = findHeadReceipt(headValue)
  const head =
    headValue === undefined ? undefined : parseChainPosition(receipt ? receipt.audit : headValue, options.head!)
  const chain = verifyAuditExport(lines, { after, head })
  if (!receipt) return chain
  const log = readLogRequirements(options)
  const receiptVerification = verifyReceipt(receipt, { jwks: await readKeys(options), log, now: new Date() })
  const checks = receiptVerification.checks.map((check) => ({ ...check, name: `head receipt: ${check.name}` }))
  return {
    ok: chain.ok && receiptVerification.ok,
    checks: [...chain.checks, ...checks],
    does_not_prove: chain.does_not_prove,
  }
}

/** The receipt of kind audit_head, by itself or inside the response of /api/audit. */
function findHeadReceipt(value: unknown): JsonObject | undefined {
  if (!isObject(value)) return undefined
  if (value.kind === 'audit_head') return value
  return findHeadReceipt(value.checkpoint) ?? findHeadReceipt(value.receipt)
}

function parseChainPosition(value: unknown, file: string): { seq: number; hash: string } {
  if (!isObject(value) || typeof value.seq !== 'number' || typeof value.hash !== 'string')
    throw new UnreadableEvidenceError(`${file} does not contain the seq and hash of an event.`)
  return { seq: value.seq, hash: value.hash }
}

function parseQuorum(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new UnreadableEvidenceError('--quorum must be a whole number above 0.')
  return number
}

function formatVerification({ ok, checks, does_not_prove }: Verification): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const formatCheck = (check: Check) =>
    `  ${checkLabels[String(check.ok)]}  ${check.name.padEnd(width)}  ${check.reason}`
  return [
    ...checks.map(formatCheck),
    '',
    'What this does not prove:',
    ...does_not_prove.map((sentence) => `  - ${sentence}`),
    '',
    ok ? 'Result: valid' : 'Result: NOT VALID',
  ].join('\n')
}

const checkLabels: Record<string, string> = { true: 'ok     ', false: 'FAILED ', skipped: 'skipped' }
