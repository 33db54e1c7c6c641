import { type Checkpoint, type CheckpointKey, parseCheckpoint, verifyCheckpoint } from './checkpoint.ts'
import { type Cosignature, readCosignatures } from './cosignature.ts'
import { NOTE_COSIGNATURE_V1, NOTE_ED25519, type Note, type NoteKey, parseVerifierKey } from './note.ts'

/** A log of a policy. Its key name is the origin of its checkpoints. */
export type PolicyLog = { key: NoteKey; verifierKey: string; url?: string }
/** A witness of a policy. `name` is used inside the policy only; `key.name` stands in signature lines. */
export type PolicyWitness = { name: string; key: NoteKey; verifierKey: string; url?: string }
export type PolicyGroup = { name: string; threshold: number; members: string[] }

/** C2SP tlog-policy: which logs and witnesses are trusted, and which of the witnesses must have cosigned. */
export type LogPolicy = { logs: PolicyLog[]; witnesses: PolicyWitness[]; groups: PolicyGroup[]; quorum: string }

export type ParsedLogPolicy = { ok: true; policy: LogPolicy } | { ok: false; reason: string }

const MAX_POLICY_LENGTH = 262_144
const MAX_DEFINITIONS = 256
/** The quorum that needs no witness; no witness or group can have this name. */
export const NO_QUORUM = 'none'

/** Reads a policy file, or says which line is wrong. */
export function parseLogPolicy(text: unknown): ParsedLogPolicy {
  if (typeof text !== 'string' || text.length > MAX_POLICY_LENGTH) return { ok: false, reason: 'This is not a policy.' }
  const policy: LogPolicy = { logs: [], witnesses: [], groups: [], quorum: '' }
  for (const [place, line] of text.split('\n').entries()) {
    const problem = hasForbiddenCharacter(line)
      ? 'the only control characters of a policy are tabs and newlines'
      : readLine(policy, splitItems(line))
    if (problem !== undefined) return { ok: false, reason: `Line ${place + 1} of the policy: ${problem}.` }
  }
  if (policy.quorum === '') return { ok: false, reason: 'The policy has no quorum line.' }
  return { ok: true, policy }
}

/** Whether these witnesses, by their names in the policy, are enough. */
export function meetsQuorum(policy: LogPolicy, cosigned: ReadonlySet<string>): boolean {
  if (policy.quorum === NO_QUORUM) return true
  const witnessed = new Set(policy.witnesses.map(({ name }) => name).filter((name) => cosigned.has(name)))
  // A group names only what stands before it, so one pass in the order of the file decides all of them.
  for (const { name, threshold, members } of policy.groups)
    if (members.filter((member) => witnessed.has(member)).length >= threshold) witnessed.add(name)
  return witnessed.has(policy.quorum)
}

export type PolicyOptions = {
  policy: LogPolicy
  /** The log that is meant. Without it any log of the policy is accepted. */
  origin?: string
  /** Keys of the log for a policy that lists no logs. */
  keys?: readonly CheckpointKey[]
  /** The current time, to refuse cosignatures from the future. */
  now?: Date
  /** With `now`: how old a cosignature may be to count. */
  maxAgeSeconds?: number
}

export type PolicyVerification = {
  ok: boolean
  reason: string
  /** Present when the log's own signature holds, whatever the witnesses did. */
  checkpoint?: Checkpoint
  note?: Note
  /** The witnesses whose cosignatures hold, by their names in the policy. */
  cosignatures: Cosignature[]
  /** The other witnesses of the policy. */
  missing: string[]
  /** Witnesses in whose name there is a cosignature that does not hold. */
  invalid: string[]
}

/**
 * Verifies that a log of the policy signed the checkpoint and that enough witnesses cosigned it. A false cosignature in
 * the name of a witness of the policy makes the checkpoint invalid, because somebody has made it up.
 */
export function verifyLogPolicy(note: unknown, options: PolicyOptions): PolicyVerification {
  const { policy, now, maxAgeSeconds } = options
  const refuse = (reason: string): PolicyVerification => ({
    ok: false,
    reason,
    cosignatures: [],
    missing: policy.witnesses.map(({ name }) => name),
    invalid: [],
  })
  const parsed = parseCheckpoint(note)
  if (!parsed) return refuse('This is not a checkpoint in the signed note format.')
  const keys = keysOfOrigin(options, parsed.origin)
  if (keys.length === 0) return refuse(`The policy lists no log '${parsed.origin}'.`)
  const head = verifyCheckpoint(note, { origin: options.origin ?? parsed.origin, keys })
  if (!head.ok) return refuse(head.reason)

  const result: PolicyVerification = { ...refuse(''), checkpoint: head.checkpoint, note: head.note, missing: [] }
  for (const { name, key } of policy.witnesses) {
    const { times, problem } = readCosignatures(head.note, key, now)
    if (problem !== undefined) {
      result.invalid.push(name)
      result.reason ||= problem
    }
    const time = Math.max(...times)
    const isRecent = !now || maxAgeSeconds === undefined || time >= now.getTime() / 1000 - maxAgeSeconds
    if (problem === undefined && times.length > 0 && isRecent) result.cosignatures.push({ name, time })
    else result.missing.push(name)
  }
  if (result.invalid.length > 0) return result
  const isMet = meetsQuorum(policy, new Set(result.cosignatures.map(({ name }) => name)))
  const cosigners = result.cosignatures.map(({ name }) => name).join(', ') || 'nobody'
  return {
    ...result,
    ok: isMet,
    reason: isMet
      ? `${head.reason} Cosigned by ${cosigners}; the quorum '${policy.quorum}' is met.`
      : `Cosigned by ${cosigners}; the quorum '${policy.quorum}' is not met.`,
  }
}

/** The keys that may sign a checkpoint of this origin. */
export const keysOfOrigin = (
  { policy, keys = [] }: Pick<PolicyOptions, 'policy' | 'keys'>,
  origin: string,
): readonly CheckpointKey[] =>
  policy.logs.length === 0
    ? keys
    : policy.logs.filter(({ key }) => key.name === origin).map(({ verifierKey }) => verifierKey)

/** Adds what a line defines; says what is wrong with it. */
function readLine(policy: LogPolicy, items: string[]): string | undefined {
  const [keyword, ...rest] = items
  if (keyword === undefined || keyword.startsWith('#')) return undefined
  if (keyword === 'quorum') return readQuorum(policy, rest)
  if (policy.logs.length + policy.witnesses.length + policy.groups.length >= MAX_DEFINITIONS)
    return `a policy defines at most ${MAX_DEFINITIONS} logs, witnesses and groups`
  if (keyword === 'log') return readLog(policy, rest)
  if (keyword === 'witness') return readWitness(policy, rest)
  if (keyword === 'group') return readGroup(policy, rest)
  return `'${keyword}' is none of log, witness, group and quorum`
}

const UNSUPPORTED_KEY = 'the verifier key is malformed, or not of the type for its use'

function readLog({ logs }: LogPolicy, [verifierKey, url, ...extra]: string[]): string | undefined {
  if (verifierKey === undefined || extra.length > 0) return 'a log line is: log <vkey> [<url>]'
  const key = parseVerifierKey(verifierKey)
  if (key?.type !== NOTE_ED25519) return UNSUPPORTED_KEY
  if (logs.some((other) => isSameKey(other.key, key))) return 'two logs have the same public key'
  logs.push({ key, verifierKey, ...(url !== undefined && { url }) })
  return undefined
}

function readWitness(policy: LogPolicy, [name, verifierKey, url, ...extra]: string[]): string | undefined {
  if (name === undefined || verifierKey === undefined || extra.length > 0)
    return 'a witness line is: witness <name> <vkey> [<url>]'
  const key = parseVerifierKey(verifierKey)
  if (key?.type !== NOTE_COSIGNATURE_V1) return UNSUPPORTED_KEY
  if (policy.witnesses.some((other) => isSameKey(other.key, key))) return 'two witnesses have the same public key'
  const problem = checkNewName(policy, name)
  if (problem === undefined) policy.witnesses.push({ name, key, verifierKey, ...(url !== undefined && { url }) })
  return problem
}

function readGroup(policy: LogPolicy, [name, thresholdText, ...members]: string[]): string | undefined {
  if (name === undefined || thresholdText === undefined || members.length === 0)
    return 'a group line is: group <name> <any, all or a number> <name>...'
  const memberProblem = members
    .map((member, place) => checkMember(policy, member, members.indexOf(member) !== place))
    .find((problem) => problem !== undefined)
  if (memberProblem !== undefined) return memberProblem
  const threshold = readThreshold(thresholdText, members.length)
  if (threshold === undefined) return `'${thresholdText}' must be any, all, or a number from 1 to ${members.length}`
  const problem = checkNewName(policy, name)
  if (problem === undefined) policy.groups.push({ name, threshold, members })
  return problem
}

function readQuorum(policy: LogPolicy, [name, ...extra]: string[]): string | undefined {
  if (name === undefined || extra.length > 0) return 'a quorum line is: quorum <name>'
  if (policy.quorum !== '') return 'there is a second quorum line'
  if (name !== NO_QUORUM && !isDefined(policy, name)) return `'${name}' is not defined on a line before this one`
  policy.quorum = name
  return undefined
}

function readThreshold(text: string, count: number): number | undefined {
  if (text === 'any') return 1
  if (text === 'all') return count
  const threshold = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  return threshold >= 1 && threshold <= count ? threshold : undefined
}

function checkMember(policy: LogPolicy, member: string, isRepeated: boolean): string | undefined {
  if (!isDefined(policy, member)) return `'${member}' is not defined on a line before this one`
  const isTaken = isRepeated || policy.groups.some(({ members }) => members.includes(member))
  return isTaken ? `'${member}' is a member of a group already` : undefined
}

function checkNewName(policy: LogPolicy, name: string): string | undefined {
  if (name === NO_QUORUM) return `'${NO_QUORUM}' cannot be the name of a witness or group`
  return isDefined(policy, name) ? `'${name}' is defined already` : undefined
}

const isDefined = ({ witnesses, groups }: LogPolicy, name: string) =>
  [...witnesses, ...groups].some((definition) => definition.name === name)

const isSameKey = (a: NoteKey, b: NoteKey) => a.publicKey.join() === b.publicKey.join()

const splitItems = (line: string): string[] => line.split(/[ \t]/).filter((item) => item !== '')

function hasForbiddenCharacter(line: string): boolean {
  for (let i = 0; i < line.length; i += 1) {
    const code = line.charCodeAt(i)
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true
  }
  return false
}
