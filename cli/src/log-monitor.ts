import {
  appendToEdge,
  type Checkpoint,
  type CheckpointKey,
  consistencyProofFromTiles,
  decodeEntryBundle,
  EMPTY_EDGE,
  hashLeaf,
  inclusionProofFromTiles,
  LOG_EVIDENCE_SCHEMA,
  type LogEvidence,
  type LogPolicy,
  NO_QUORUM,
  type PolicyVerification,
  parseCheckpoint,
  rootFromTiles,
  rootOfEdge,
  TILE_WIDTH,
  type Tile,
  type TileReader,
  type TreeEdge,
  tileInTree,
  tilePath,
  tilesForConsistency,
  tilesForInclusion,
  tilesForRoot,
  toBase64,
  verifyCheckpoint,
  verifyConsistency,
  verifyLogPolicy,
} from '@countersign/proof'

/** Reads a path of the log, such as `checkpoint` or `tile/0/000`: undefined when the log has none; throws when it cannot be asked. */
export type LogReader = (path: string) => Promise<Uint8Array | undefined>

export type FindingKind = 'signature' | 'fork' | 'rollback' | 'withheld_entry' | 'unproven' | 'quorum' | 'witness'

/** Something that is wrong with a log or a witness. A warning leaves the log itself beyond doubt. */
export type Finding = { kind: FindingKind; severity: 'failure' | 'warning'; message: string; evidence?: LogEvidence }

/** What a monitor must not forget between two looks. */
export type MonitorState = {
  origin: string
  checkpoint: string
  seenAt: string
  edge: TreeEdge
  /** The newest checkpoint with a quorum. */
  cosigned?: { checkpoint: string; seenAt: string; times: Record<string, number> }
  /** The smallest tree that still waits for its quorum, and since when it was seen. */
  waiting?: { size: number; since: string }
}

export type MonitorOptions = {
  read: LogReader
  /** Keys of the log; with a policy that lists logs, those of the policy. */
  keys?: readonly CheckpointKey[]
  policy?: LogPolicy
  state?: MonitorState
  now: Date
  /** How long a tree may be without a quorum. */
  maxLagSeconds?: number
}

export type MonitorReport = {
  findings: Finding[]
  /** What to remember; as before when the log contradicted itself, so that the next look finds it again. */
  state?: MonitorState
  size?: number
  cosignedSize?: number
  newEntries: number
}

const DEFAULT_LAG_SECONDS = 60
const WITNESSED = 'checkpoint?witnessed=true'

type Head = Checkpoint & { text: string }

/**
 * One look at a log: its newest checkpoint must be signed and extend the one before, the entries that it added must be
 * shown and lead to its root, and the newest cosigned checkpoint must be of the same tree and have the policy's quorum.
 */
export async function checkLog(options: MonitorOptions): Promise<MonitorReport> {
  const { read, state, policy } = options
  const text = decodeText(await read('checkpoint'))
  const head = verifyHead(text, options)
  if ('findings' in head) return { findings: head.findings, state, newEntries: 0 }
  const findings = [...head.witnessFindings]
  const report = (more: Finding[], kept = state): MonitorReport => ({
    findings: [...findings, ...more],
    state: kept,
    size: head.size,
    newEntries: 0,
  })

  const contradiction = state && compareHeads(state, head, options)
  if (contradiction) return report([contradiction])
  const growth = await readGrowth(read, state?.edge ?? EMPTY_EDGE, head)
  if ('problem' in growth) return report([await explainGrowth(growth.problem, head, options)])

  const newState: MonitorState = {
    ...state,
    origin: head.origin,
    checkpoint: head.text,
    seenAt: options.now.toISOString(),
    edge: growth.edge,
  }
  const newEntries = growth.edge.size - (state?.edge.size ?? 0)
  if (!policy || policy.quorum === NO_QUORUM) return { ...report([], newState), newEntries }
  const cosigned = await checkCosigned(head, newState, options)
  // A contradiction between the cosigned and the newest checkpoint is found again as long as nothing is remembered.
  const isContradicted = cosigned.findings.some(({ kind }) => ['fork', 'rollback', 'unproven'].includes(kind))
  return {
    ...report(cosigned.findings, isContradicted ? state : cosigned.state),
    newEntries,
    ...(cosigned.size !== undefined && { cosignedSize: cosigned.size }),
  }
}

/** The log's signature, and false cosignatures under the newest checkpoint. */
function verifyHead(
  text: string | undefined,
  { keys = [], policy, state, now }: MonitorOptions,
): (Head & { witnessFindings: Finding[] }) | { findings: Finding[] } {
  const parsed = parseCheckpoint(text)
  if (text === undefined || !parsed) return { findings: [fail('signature', 'The log shows no readable checkpoint.')] }
  const origin = state?.origin ?? parsed.origin
  const policyKeys = policy?.logs.filter(({ key }) => key.name === origin).map(({ verifierKey }) => verifierKey) ?? []
  const trusted = policy && policy.logs.length > 0 ? policyKeys : keys
  const verified = verifyCheckpoint(text, { origin, keys: trusted })
  if (!verified.ok) return { findings: [fail('signature', verified.reason)] }
  const cosignatures = policy && verifyLogPolicy(text, { policy, keys, origin, now })
  const witnessFindings = cosignatures ? falseCosignatures(cosignatures) : []
  return { ...verified.checkpoint, text, witnessFindings }
}

const falseCosignatures = ({ invalid, reason }: PolicyVerification): Finding[] =>
  invalid.map((name) => fail('witness', `The cosignature of '${name}' under the checkpoint is false: ${reason}`))

/** What two signed checkpoints say against each other without looking further. */
function compareHeads(state: MonitorState, head: Head, { now }: MonitorOptions): Finding | undefined {
  const last = parseCheckpoint(state.checkpoint)!
  const evidence = (kind: 'fork' | 'rollback'): LogEvidence => ({
    schema: LOG_EVIDENCE_SCHEMA,
    kind,
    origin: state.origin,
    checkpoints: [state.checkpoint, head.text],
    observed_at: [state.seenAt, now.toISOString()],
  })
  if (head.size === last.size && toBase64(head.root) !== toBase64(last.root))
    return fail('fork', `The log has signed two trees of ${head.size} entries.`, evidence('fork'))
  if (head.size < last.size)
    return fail('rollback', `The log had ${last.size} entries and has ${head.size} now.`, evidence('rollback'))
  return undefined
}

type GrowthProblem = { index: number; message: string }

/** Reads every entry that was added, and compares the root that they lead to. */
async function readGrowth(
  read: LogReader,
  edge: TreeEdge,
  head: Head,
): Promise<{ edge: TreeEdge } | { problem: GrowthProblem }> {
  let grown = edge
  while (grown.size < head.size) {
    const bundle = await readBundle(read, Math.floor(grown.size / TILE_WIDTH), head.size)
    if ('message' in bundle) return { problem: { index: grown.size, message: bundle.message } }
    grown = appendToEdge(grown, bundle.entries.slice(grown.size % TILE_WIDTH).map(hashLeaf))
  }
  if (toBase64(rootOfEdge(grown)) === toBase64(head.root)) return { edge: grown }
  return { problem: { index: edge.size, message: 'The entries that the log shows do not lead to its root.' } }
}

async function readBundle(
  read: LogReader,
  index: number,
  size: number,
): Promise<{ entries: Uint8Array[] } | { message: string }> {
  const { width } = tileInTree(0, index, size)!
  const path = tilePath({ level: 'entries', index, width })
  const bytes = await read(path)
  if (!bytes) return { message: `The log does not show ${path}.` }
  try {
    return { entries: decodeEntryBundle(bytes, width) }
  } catch (error) {
    return { message: `${path}: ${(error as Error).message}` }
  }
}

/**
 * Finds out from the log's tiles what is behind entries that do not lead to the root: another tree than the one before, or
 * entries that are not shown. Tiles that do not lead to the root either prove nothing.
 */
async function explainGrowth(problem: GrowthProblem, head: Head, options: MonitorOptions): Promise<Finding> {
  const { state, now } = options
  const unproven = (reason: string) => fail('unproven', `${problem.message} ${reason}`)
  if (state) {
    const last = { ...parseCheckpoint(state.checkpoint)!, text: state.checkpoint }
    const relation = await compareTrees(options.read, last, head, [state.seenAt, now.toISOString()])
    if (relation !== 'extends') return relation.evidence ? relation : unproven(relation.message)
  }
  const withheld = await findWithheldEntry(options.read, state?.edge.size ?? 0, head, now)
  return withheld ?? unproven('The tiles of the log do not show why.')
}

/** Whether the larger tree extends the smaller one, from the log's own tiles. */
async function compareTrees(
  read: LogReader,
  smaller: Head,
  larger: Head,
  observedAt: [string, string],
): Promise<'extends' | Finding> {
  const { size } = larger
  if (smaller.size === 0) return 'extends'
  const tiles = await readTiles(read, [...tilesForRoot(smaller.size), ...tilesForConsistency(smaller.size, size)], size)
  if ('missing' in tiles) return fail('unproven', `The log does not show ${tiles.missing}.`)
  const root = rootFromTiles(smaller.size, tiles.reader)
  const proof = consistencyProofFromTiles(smaller.size, size, tiles.reader)
  if (!verifyConsistency({ oldSize: smaller.size, oldRoot: root, newSize: size, newRoot: larger.root, proof }))
    return fail('unproven', 'The tiles of the log do not lead to the root that it signed.')
  if (toBase64(root) === toBase64(smaller.root)) return 'extends'
  return fail('fork', `The tree of ${size} entries does not extend the signed one of ${smaller.size}.`, {
    schema: LOG_EVIDENCE_SCHEMA,
    kind: 'fork',
    origin: larger.origin,
    checkpoints: [smaller.text, larger.text],
    observed_at: observedAt,
    fork: { root_at_smaller_size: toBase64(root), consistency_proof: proof.map(toBase64) },
  })
}

async function findWithheldEntry(read: LogReader, from: number, head: Head, now: Date): Promise<Finding | undefined> {
  const { size } = head
  for (let index = Math.floor(from / TILE_WIDTH); index * TILE_WIDTH < size; index += 1) {
    const tile = tileInTree(0, index, size)!
    const hashes = await read(tilePath(tile))
    const bundle = await readBundle(read, index, size)
    const first = Math.max(0, from - index * TILE_WIDTH)
    for (let place = first; place < tile.width && hashes?.length === tile.width * 32; place += 1) {
      const leafHash = hashes.subarray(place * 32, (place + 1) * 32)
      const entry = 'entries' in bundle ? bundle.entries[place]! : undefined
      if (entry && toBase64(hashLeaf(entry)) === toBase64(leafHash)) continue
      return withheldEntry(read, head, { index: index * TILE_WIDTH + place, leafHash, entry }, now)
    }
  }
  return undefined
}

async function withheldEntry(
  read: LogReader,
  head: Head,
  { index, leafHash, entry }: { index: number; leafHash: Uint8Array; entry: Uint8Array | undefined },
  now: Date,
): Promise<Finding | undefined> {
  const tiles = await readTiles(read, tilesForInclusion(index, head.size), head.size)
  if ('missing' in tiles) return undefined
  const evidence: LogEvidence = {
    schema: LOG_EVIDENCE_SCHEMA,
    kind: 'withheld_entry',
    origin: head.origin,
    checkpoints: [head.text],
    observed_at: [now.toISOString()],
    entry: {
      index,
      leaf_hash: toBase64(leafHash),
      inclusion_proof: inclusionProofFromTiles(index, head.size, tiles.reader).map(toBase64),
      shown: entry ? toBase64(entry) : null,
    },
  }
  return fail('withheld_entry', `The log does not show the content of entry ${index}, which its tree has.`, evidence)
}

/** Fetches tiles as the tree of `size` has them; a narrower one is the beginning of a wider one. */
async function readTiles(
  read: LogReader,
  tiles: readonly Tile[],
  size: number,
): Promise<{ reader: TileReader } | { missing: string }> {
  const bytesByPlace = new Map<string, Uint8Array>()
  for (const { level, index } of tiles) {
    const tile = tileInTree(level, index, size)!
    const place = `${level}/${index}`
    if (bytesByPlace.has(place)) continue
    const bytes = await read(tilePath(tile))
    if (bytes?.length !== tile.width * 32) return { missing: tilePath(tile) }
    bytesByPlace.set(place, bytes)
  }
  return { reader: ({ level, index, width }) => bytesByPlace.get(`${level}/${index}`)?.subarray(0, width * 32) }
}

/** The newest checkpoint with a quorum must be of the same tree, must not go back, and must not fall behind. */
async function checkCosigned(
  head: Head,
  state: MonitorState,
  options: MonitorOptions,
): Promise<{ findings: Finding[]; state: MonitorState; size?: number }> {
  const { read, policy, keys, now } = options
  const text = decodeText(await read(WITNESSED))
  if (text === undefined) {
    const waiting = state.waiting ?? { size: head.size, since: now.toISOString() }
    return { findings: lagFindings(waiting, options), state: { ...state, waiting } }
  }
  const verified = verifyLogPolicy(text, { policy: policy!, keys, origin: head.origin, now })
  if (!verified.checkpoint) return { findings: [fail('signature', verified.reason)], state }
  const cosigned = { ...verified.checkpoint, text }
  const findings = [...falseCosignatures(verified), ...checkTimes(verified, cosigned, state)]
  if (verified.invalid.length === 0 && !verified.ok)
    findings.push(fail('quorum', `The log shows a checkpoint as cosigned that is not: ${verified.reason}`))
  const last = state.cosigned && parseCheckpoint(state.cosigned.checkpoint)
  if (last && cosigned.size < last.size) {
    const evidence: LogEvidence = {
      schema: LOG_EVIDENCE_SCHEMA,
      kind: 'rollback',
      origin: head.origin,
      checkpoints: [state.cosigned!.checkpoint, text],
      observed_at: [state.cosigned!.seenAt, now.toISOString()],
    }
    findings.push(
      fail('rollback', `The cosigned tree had ${last.size} entries and has ${cosigned.size} now.`, evidence),
    )
  }
  const relation = await compareCosigned(head, cosigned, options)
  if (relation !== 'extends') findings.push(relation)
  if (findings.some(({ severity }) => severity === 'failure')) return { findings, state, size: cosigned.size }

  for (const name of verified.missing)
    findings.push(warn('witness', `'${name}' has not cosigned the tree of ${cosigned.size} entries.`))
  const isWaiting = cosigned.size < head.size
  const isStillWaiting = state.waiting !== undefined && cosigned.size < state.waiting.size
  const waiting = isStillWaiting ? state.waiting : isWaiting ? { size: head.size, since: now.toISOString() } : undefined
  if (waiting) findings.push(...lagFindings(waiting, options))
  const times = Object.fromEntries(verified.cosignatures.map(({ name, time }) => [name, time]))
  const { waiting: _, ...rest } = state
  return {
    findings,
    size: cosigned.size,
    state: {
      ...rest,
      cosigned: { checkpoint: text, seenAt: now.toISOString(), times: { ...state.cosigned?.times, ...times } },
      ...(waiting && { waiting }),
    },
  }
}

async function compareCosigned(
  head: Head,
  cosigned: Head,
  { read, now }: MonitorOptions,
): Promise<'extends' | Finding> {
  const at = now.toISOString()
  if (cosigned.size !== head.size) {
    const [smaller, larger] = cosigned.size < head.size ? [cosigned, head] : [head, cosigned]
    return compareTrees(read, smaller, larger, [at, at])
  }
  if (toBase64(cosigned.root) === toBase64(head.root)) return 'extends'
  return fail('fork', `The cosigned tree of ${head.size} entries is another than the one that is shown.`, {
    schema: LOG_EVIDENCE_SCHEMA,
    kind: 'fork',
    origin: head.origin,
    checkpoints: [head.text, cosigned.text],
    observed_at: [at, at],
  })
}

/** A witness that dates a larger tree before a smaller one is out of order. */
function checkTimes({ cosignatures }: PolicyVerification, { size }: Head, state: MonitorState): Finding[] {
  const last = state.cosigned && parseCheckpoint(state.cosigned.checkpoint)
  if (!last || size <= last.size) return []
  return cosignatures
    .filter(({ name, time }) => time < (state.cosigned!.times[name] ?? 0))
    .map(({ name }) =>
      fail('witness', `'${name}' dates its cosignature of ${size} entries before that of ${last.size}.`),
    )
}

function lagFindings(waiting: { size: number; since: string }, options: MonitorOptions): Finding[] {
  const { now, maxLagSeconds = DEFAULT_LAG_SECONDS } = options
  const seconds = Math.floor((now.getTime() - Date.parse(waiting.since)) / 1000)
  if (seconds <= maxLagSeconds) return []
  return [fail('quorum', `The tree of ${waiting.size} entries has been without a quorum for ${seconds} seconds.`)]
}

const fail = (kind: FindingKind, message: string, evidence?: LogEvidence): Finding => ({
  kind,
  severity: 'failure',
  message,
  ...(evidence && { evidence }),
})
const warn = (kind: FindingKind, message: string): Finding => ({ kind, severity: 'warning', message })

function decodeText(bytes: Uint8Array | undefined): string | undefined {
  try {
    return bytes && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return ''
  }
}
