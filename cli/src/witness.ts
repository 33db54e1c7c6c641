import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  cosignatureLine,
  cosignatureMessage,
  decideAddCheckpoint,
  formatVerifierKey,
  fromBase64,
  LOG_EVIDENCE_SCHEMA,
  NOTE_COSIGNATURE_V1,
  noteKeyId,
  parseAddCheckpoint,
  parseCheckpoint,
  TLOG_SIZE_TYPE,
  toBase64,
  toHex,
  type WitnessedTree,
} from '@countersign/proof'
import { CliError } from './cli-error.ts'
import { type FolderLock, readIfPresent, writeDurably } from './durable-file.ts'

export type WitnessKey = {
  name: string
  publicKey: Uint8Array
  verifierKey: string
  sign(message: Uint8Array): Uint8Array
}

/** The answer to one request. */
export type WitnessAnswer = { status: number; type: string; body: string }

type StoredTree = WitnessedTree & { note: string; time: number }

const SEED_BYTES = 32
const MAX_WAITING = 256
const MAX_EVIDENCE_FILES = 100
const PLAIN = 'text/plain; charset=utf-8'

/**
 * A witness after C2SP tlog-witness. What it has cosigned of each log is on the disk before it answers, and requests about
 * one log wait for one another, so that it never cosigns two trees of which one does not extend the other.
 */
export function createWitness({
  key,
  logs,
  folder,
  lock,
  now = () => new Date(),
}: {
  key: WitnessKey
  /** Verifier keys of the logs that it witnesses. */
  logs: readonly string[]
  folder: string
  lock: Pick<FolderLock, 'assertHeld'>
  now?: () => Date
}) {
  const trees = new Map<string, StoredTree>()
  const turns = new Map<string, Promise<unknown>>()
  let waiting = 0
  const statePath = (origin: string) => join(folder, `log-${hashName(origin)}.json`)

  const latest = (origin: string): StoredTree | undefined => {
    const tree = trees.get(origin) ?? readTree(statePath(origin), origin)
    if (tree) trees.set(origin, tree)
    return tree
  }

  const answer = (body: string): WitnessAnswer => {
    const decision = decideAddCheckpoint(body, { logs, latest })
    if (decision.status === 409 && !decision.isFork)
      return { status: 409, type: TLOG_SIZE_TYPE, body: `${decision.size}\n` }
    if (decision.status === 409) keepEvidence(decision.checkpoint.origin, parseAddCheckpoint(body)!.checkpoint)
    if (decision.status !== 200) return { status: decision.status, type: PLAIN, body: `${decision.reason}\n` }

    const { origin, size, root } = decision.checkpoint
    const time = Math.max(Math.floor(now().getTime() / 1000), latest(origin)?.time ?? 0)
    const tree = { size, root, note: parseAddCheckpoint(body)!.checkpoint, time }
    lock.assertHeld()
    writeDurably(
      statePath(origin),
      `${JSON.stringify({ origin, size, root: toBase64(root), note: tree.note, time })}\n`,
    )
    trees.set(origin, tree)
    const line = cosignatureLine(key, time, key.sign(cosignatureMessage(decision.text, time)))
    return { status: 200, type: PLAIN, body: line }
  }

  /** Two roots at one size under the log's signature: anybody can verify that. */
  const keepEvidence = (origin: string, note: string) => {
    const evidence = {
      schema: LOG_EVIDENCE_SCHEMA,
      kind: 'fork',
      origin,
      checkpoints: [latest(origin)!.note, note],
      observed_at: [new Date(latest(origin)!.time * 1000).toISOString(), now().toISOString()],
    }
    const name = `evidence-${hashName(evidence.checkpoints.join())}.json`
    const files = readdirSync(folder).filter((file) => file.startsWith('evidence-'))
    if (files.includes(name) || files.length >= MAX_EVIDENCE_FILES) return
    writeDurably(join(folder, name), `${JSON.stringify(evidence, null, 2)}\n`)
  }

  return {
    async addCheckpoint(body: string): Promise<WitnessAnswer> {
      if (waiting >= MAX_WAITING) return { status: 503, type: PLAIN, body: 'Too many requests are waiting.\n' }
      const origin = parseCheckpoint(parseAddCheckpoint(body)?.checkpoint)?.origin ?? ''
      waiting += 1
      const turn = (turns.get(origin) ?? Promise.resolve()).then(() => answer(body))
      const settled = turn.catch(() => undefined)
      turns.set(origin, settled)
      try {
        return await turn
      } finally {
        waiting -= 1
        if (turns.get(origin) === settled) turns.delete(origin)
      }
    },
  }
}

const hashName = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** A damaged file is never taken for an empty one: the witness would cosign a second history. */
function readTree(path: string, origin: string): StoredTree | undefined {
  const text = readIfPresent(path)
  if (text === undefined) return undefined
  try {
    const stored = JSON.parse(text)
    const checkpoint = parseCheckpoint(stored.note)
    const root = fromBase64(stored.root)
    const isWhole =
      stored.origin === origin &&
      checkpoint?.origin === origin &&
      checkpoint.size === stored.size &&
      toBase64(checkpoint.root) === stored.root &&
      Number.isSafeInteger(stored.time)
    if (isWhole) return { size: stored.size, root, note: stored.note, time: stored.time }
  } catch {
    // Reported below, like contents that contradict themselves.
  }
  throw new CliError(`${path} is damaged. A witness that has lost its state must not sign again under the same key.`)
}

/** Reads the key of a witness, or makes one: `PRIVATE+KEY+<name>+<key id>+<base64 of type and seed>`, as sumdb/note has it. */
export function openWitnessKey(path: string, name: string): WitnessKey {
  const text = readIfPresent(path)?.trim()
  if (text === undefined) {
    const key = toWitnessKey(name, randomBytes(SEED_BYTES))
    writeDurably(path, `${key.text}\n`)
    return key
  }
  const [, storedName, , encoded] = /^PRIVATE\+KEY\+([^+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text) ?? []
  const bytes = Buffer.from(encoded ?? '', 'base64')
  if (storedName === undefined || bytes.length !== 1 + SEED_BYTES || bytes[0] !== NOTE_COSIGNATURE_V1)
    throw new CliError(`${path} does not hold the key of a witness.`)
  const key = toWitnessKey(storedName, bytes.subarray(1))
  if (key.text !== text) throw new CliError(`${path} is damaged: the key id is not that of the key.`)
  if (storedName !== name) throw new CliError(`${path} is the key of '${storedName}', not of '${name}'.`)
  return key
}

function toWitnessKey(name: string, seed: Uint8Array): WitnessKey & { text: string } {
  const privateKey = privateKeyOfSeed(seed)
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' })
  const publicKey = new Uint8Array(Buffer.from(x!, 'base64url'))
  const noteKey = { name, type: NOTE_COSIGNATURE_V1, publicKey } as const
  const encoded = toBase64(new Uint8Array([NOTE_COSIGNATURE_V1, ...seed]))
  return {
    name,
    publicKey,
    verifierKey: formatVerifierKey(noteKey),
    text: `PRIVATE+KEY+${name}+${toHex(noteKeyId(noteKey))}+${encoded}`,
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  }
}

const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

const privateKeyOfSeed = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: 'der', type: 'pkcs8' })

/** Reads every stored tree once, so that a damaged file is found at the start and not at the first request. */
export function checkWitnessState(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const file of readdirSync(folder).filter((name) => /^log-[0-9a-f]+\.json$/.test(name))) {
    const path = join(folder, file)
    let origin: unknown
    try {
      origin = JSON.parse(readIfPresent(path)!).origin
    } catch {
      origin = undefined
    }
    if (typeof origin !== 'string' || file !== `log-${hashName(origin)}.json`) readTree(path, '')
    else readTree(path, origin)
  }
}
