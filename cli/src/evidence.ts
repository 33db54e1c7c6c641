import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import {
  type CountersOpening,
  type Jwks,
  type LogPolicy,
  type Opening,
  parseJson,
  parseLogPolicy,
} from '@countersign/proof'

/** The evidence could not be read, which says nothing about whether it is valid. */
export class UnreadableEvidenceError extends Error {}

/** The service was asked and said no. */
export class RefusedRequestError extends UnreadableEvidenceError {}

export type JsonObject = Record<string, unknown>

export type Evidence =
  | { kind: 'receipt'; receipt: JsonObject; opening?: Opening }
  | { kind: 'receipts'; receipts: JsonObject[] }
  | { kind: 'attestation'; attestation: JsonObject }
  | { kind: 'audit'; lines: Iterable<string> }
  | { kind: 'tlog-proof'; text: string }
  | { kind: 'log-evidence'; evidence: JsonObject }

const MAX_FILE_BYTES = 64 * 1024 * 1024
const FETCH_MS = 15_000

/** Detects the kind of evidence from the contents; an audit export also from its name, as it may be too long to read at once. */
export function readEvidence(path: string): Evidence {
  if (/\.(ndjson|jsonl)$/.test(path)) return { kind: 'audit', lines: readLines(path) }
  const text = readText(path)
  if (text.startsWith('c2sp.org/tlog-proof@')) return { kind: 'tlog-proof', text }
  const [firstLine = ''] = text.trimStart().split('\n', 1)
  const value = tryParse(text) ?? tryParse(firstLine)
  if (isAuditEvent(value)) return { kind: 'audit', lines: readLines(path) }
  const evidence = findEvidence(value)
  if (!evidence)
    throw new UnreadableEvidenceError(
      `${path} is not a receipt, an attestation, an audit export, a tlog-proof or evidence against a log.`,
    )
  return evidence
}

/** A receipt or attestation by itself or inside the API response it came with, or several receipts of one run. */
function findEvidence(value: unknown): Evidence | undefined {
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) return { kind: 'receipts', receipts: value }
  if (!isObject(value)) return undefined
  if (typeof value.schema === 'string' && value.schema.startsWith('run-receipt/'))
    return { kind: 'receipt', receipt: value }
  if (typeof value.schema === 'string' && value.schema.startsWith('basis-attestation/'))
    return { kind: 'attestation', attestation: value }
  if (typeof value.schema === 'string' && value.schema.startsWith('log-evidence/'))
    return { kind: 'log-evidence', evidence: value }
  const evidence = findEvidence(value.receipt)
  if (evidence?.kind === 'receipt') return { ...evidence, opening: readOpening(value) }
  return evidence ?? findEvidence(value.attestation) ?? findEvidence(value.receipts)
}

/** The answer of a run holds the salt and the output, so a file of it is an opened receipt. */
function readOpening({ evidence, output }: JsonObject): Opening | undefined {
  if (!isObject(evidence) || typeof evidence.salt !== 'string' || typeof output !== 'string') return undefined
  const { salt, counters } = evidence
  return { salt, output, ...(counters !== undefined && { counters: counters as CountersOpening }) }
}

const isAuditEvent = (value: unknown) => isObject(value) && 'seq' in value && 'hash' in value && !('schema' in value)

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function readJson(path: string): unknown {
  const text = readText(path)
  try {
    return parseJson(text)
  } catch (cause) {
    throw new UnreadableEvidenceError(`${path} is not valid JSON: ${(cause as Error).message}`)
  }
}

export function readKeySet(path: string): Jwks {
  const value = readJson(path)
  if (!isObject(value) || !Array.isArray(value.keys))
    throw new UnreadableEvidenceError(`${path} is not a key set {"keys": [...]}.`)
  return value as unknown as Jwks
}

export function readPolicyFile(path: string): LogPolicy {
  const parsed = parseLogPolicy(readText(path))
  if (!parsed.ok) throw new UnreadableEvidenceError(`${path}: ${parsed.reason}`)
  return parsed.policy
}

export async function fetchText(url: string): Promise<string> {
  let response: Response
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS), headers: { accept: '*/*' } })
  } catch (cause) {
    throw new UnreadableEvidenceError(`${url} cannot be reached: ${(cause as Error).message}`)
  }
  if (response.ok) return response.text()
  const isRefused = response.status >= 400 && response.status < 500 && response.status !== 429
  throw new (isRefused ? RefusedRequestError : UnreadableEvidenceError)(`${url} responded ${response.status}.`)
}

export async function fetchJson(url: string): Promise<unknown> {
  const value = tryParse(await fetchText(url))
  if (value === undefined) throw new UnreadableEvidenceError(`${url} did not respond with valid JSON.`)
  return value
}

function readText(path: string): string {
  requireFile(path)
  if (statSync(path).size > MAX_FILE_BYTES)
    throw new UnreadableEvidenceError(`${path} is larger than ${MAX_FILE_BYTES} bytes.`)
  return readFileSync(path, 'utf8')
}

function requireFile(path: string) {
  if (!existsSync(path)) throw new UnreadableEvidenceError(`There is no file ${path}.`)
  if (statSync(path).isDirectory()) throw new UnreadableEvidenceError(`${path} is a folder, not a file.`)
}

function tryParse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Streams the lines of a file of any length. */
function* readLines(path: string): Generator<string> {
  requireFile(path)
  const file = openSync(path, 'r')
  try {
    const decoder = new StringDecoder('utf8')
    const chunk = Buffer.alloc(1 << 20)
    let incompleteLine = ''
    for (let bytesRead = readSync(file, chunk); bytesRead > 0; bytesRead = readSync(file, chunk)) {
      const lines = (incompleteLine + decoder.write(chunk.subarray(0, bytesRead))).split('\n')
      incompleteLine = lines.pop()!
      yield* lines
    }
    if (incompleteLine !== '') yield incompleteLine
  } finally {
    closeSync(file)
  }
}
