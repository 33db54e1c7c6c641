import {
  appendToTiles,
  checkpointSignatureLine,
  checkpointText,
  consistencyProofFromTiles,
  type EntryTile,
  emptyRoot,
  encodeEntryBundle,
  formatNote,
  formatVerifierKey,
  type LogPolicy,
  NO_QUORUM,
  NOTE_ED25519,
  rootFromTiles,
  type Tile,
  type TileReader,
  tileInTree,
  tilePath,
  tilesForConsistency,
  tilesForRoot,
  toBase64,
  utf8,
  verifyLogPolicy,
} from '@countersign/proof'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { JournalConsumer } from '../../platform/journal.ts'
import type { Signer } from '../../platform/keys.ts'
import { invalid, notFound, unavailable } from '../../platform/problem.ts'
import { createInclusionProofs, type StoredTile } from './inclusion-proofs.ts'
import {
  type LogHead,
  partsSince,
  publishHead,
  readAppendState,
  readCosignatures,
  readEntries,
  readHead,
  readNewestCosignatures,
  readTiles,
  writeAppend,
} from './log.store.ts'
import { cosignedSizes, publishSize, readQuorum, resetPublishedSize } from './log-quorum.store.ts'
import { acceptCosignatures, policyProblem } from './witness.ts'

export type TransparencyLogDeps = {
  db: Db
  clock: Clock
  /** The log's permanent name: a checkpoint under another name belongs to another log. */
  origin: string
  /** The key in use first, then keys being replaced, which sign until no reader pins them any more. */
  signers: readonly Signer[]
  /** Verifier key lines of the witnesses whose cosignatures are accepted. */
  witnesses: readonly string[]
  /** Which witnesses must have cosigned a checkpoint for it to count as witnessed; without it, any of them. */
  policy?: LogPolicy
}

/** How the newest checkpoint stands with its quorum: `waiting` for a moment is normal, `missing` is not. */
export type LogQuorum = {
  state: 'ok' | 'waiting' | 'missing'
  size: number
  cosignedSize: number
  behindSeconds: number
}

/** A place in the log with its proof, as receipts carry it. */
export type LogPlace = { origin: string; index: number; inclusion_proof: string[]; checkpoint: string }

export type TransparencyLog = ReturnType<typeof createTransparencyLog>

const HASH_BYTES = 32
/** Longer than a turn of all witnesses takes. */
const QUORUM_PATIENCE_SECONDS = 60

/**
 * A C2SP tlog-tiles log kept in tables. Tiles only grow, so any smaller tree can be read from the tiles of a larger
 * one. A reader needs no snapshot: it reads the checkpoint first, then the tiles that the checkpoint covers.
 */
export function createTransparencyLog({ db, clock, origin, signers, witnesses, policy }: TransparencyLogDeps) {
  const inclusion = createInclusionProofs((tiles) => readTiles(db, tiles))
  const verifierKeys = signers.map(({ publicKey }) =>
    formatVerifierKey({ name: origin, type: NOTE_ED25519, publicKey }),
  )
  const hasQuorum = policy !== undefined && policy.quorum !== NO_QUORUM
  /** Written in the transaction under way, or committed and not signed yet. */
  let unsigned: { size: number; root: Uint8Array; newestNote: string | undefined } | undefined
  let hasSigned = false

  const noteOf = (size: number, root: Uint8Array): string => {
    const text = checkpointText({ origin, size, root })
    return formatNote(
      text,
      signers.map((signer) => checkpointSignatureLine(origin, signer.publicKey, signer.sign(text))),
    )
  }

  const currentHead = async (): Promise<LogHead> => {
    const head = await readHead(db)
    if (!head) throw unavailable('The log has no checkpoint yet.')
    return head
  }

  const checkpointOf = (head: LogHead) => head.note + head.cosignatures

  /** A checkpoint of the past is signed again, which gives the same signature. */
  const headAt = async (size: number, cosignatures: string): Promise<LogHead> => {
    const root = await rootAt(db, size)
    return { origin, size, root: Buffer.from(root), note: noteOf(size, root), cosignatures }
  }

  /** The newest checkpoint with the quorum of the policy; without a policy, the newest that any witness cosigned. */
  const witnessedHead = async (): Promise<LogHead | undefined> => {
    if (hasQuorum) {
      const { published_size } = await readQuorum(db)
      return published_size === 0 ? undefined : headAt(published_size, await readCosignatures(db, published_size))
    }
    const cosigned = await readNewestCosignatures(db)
    return cosigned && headAt(cosigned.size, cosigned.cosignatures)
  }

  const meetsPolicy = async (size: number): Promise<boolean> => {
    const checkpoint = checkpointOf(await headAt(size, await readCosignatures(db, size)))
    return verifyLogPolicy(checkpoint, { policy: policy!, keys: verifierKeys, origin }).ok
  }

  const publishIfQuorum = async (size: number) => {
    if (hasQuorum && (await meetsPolicy(size))) await publishSize(db, size, clock.now())
  }

  const consumer: JournalConsumer = {
    name: 'receipt log',
    column: 'receipt_id',
    // The first pass of a process runs even without receipts: the keys may be new, or the last tree was not signed yet.
    isDue: () => !hasSigned,
    onLease: () => {
      hasSigned = false
    },

    async process(tx, rows) {
      const ids = rows.map(({ receipt_id }) => receipt_id!)
      const { head, size, tiles, leaves } = await readAppendState(tx, ids)
      const readEdgeTile = toTileReader(tiles)
      const currentRoot = rootFromTiles(size, readEdgeTile)
      if (head && !head.root.equals(currentRoot))
        throw new Error(`The stored tiles do not produce the signed root at size ${size}; nothing is appended to them.`)
      if (leaves.length !== ids.length * HASH_BYTES) throw new Error('A receipt in the journal is not stored.')
      const newTree =
        ids.length > 0 ? appendToTiles(size, readEdgeTile, splitHashes(leaves)) : { size, root: currentRoot, tiles: [] }
      if (ids.length > 0 || !head) {
        const tree = { origin, size: newTree.size, root: Buffer.from(newTree.root) }
        const oldLength = (tile: Tile) =>
          tiles.find(({ level, index }) => level === tile.level && index === tile.index)?.bytes.length ?? 0
        const parts = newTree.tiles.flatMap(({ tile, bytes }) => partsSince(tile, bytes, oldLength(tile)))
        await writeAppend(tx, { first: size, ids, parts, tree, at: clock.now() })
      }
      unsigned = { size: newTree.size, root: newTree.root, newestNote: head?.note }
      hasSigned = false
    },

    // A tree is signed only now: a failover could undo a commit that was not confirmed, and the log would have two histories.
    async afterCommit(confirmedDb) {
      if (!unsigned) return
      const { size, root, newestNote } = unsigned
      unsigned = undefined
      const note = noteOf(size, root)
      // When another process has published a larger one meanwhile, the next pass sees it.
      hasSigned =
        note === newestNote || (await publishHead(confirmedDb, { size, root: Buffer.from(root), note }, clock.now()))
    },
  }

  return {
    origin,
    consumer,

    /** Refuses a database that holds a log with another name. */
    async open() {
      const head = await readHead(db)
      if (head && head.origin !== origin)
        throw new Error(`The log in this database is named '${head.origin}', not '${origin}'; a log keeps its name.`)
      const problem = policy && policyProblem(policy, verifierKeys)
      if (problem !== undefined) throw new Error(`LOG_POLICY cannot be used: ${problem}`)
      if (!hasQuorum) return
      for (const size of await cosignedSizes(db)) if (await meetsPolicy(size)) return resetPublishedSize(db, size)
      await resetPublishedSize(db, 0)
    },

    /** Undefined without a policy that asks for witnesses. */
    async quorum(): Promise<LogQuorum | undefined> {
      if (!hasQuorum) return undefined
      const { size, published_size, behind_since } = await readQuorum(db)
      const behindSeconds = behind_since === null ? 0 : (clock.now().getTime() - behind_since.getTime()) / 1000
      const state = behind_since === null ? 'ok' : behindSeconds <= QUORUM_PATIENCE_SECONDS ? 'waiting' : 'missing'
      return { state, size, cosignedSize: published_size, behindSeconds: Math.max(0, behindSeconds) }
    },

    /** The checkpoint of a size without cosignatures. */
    checkpointAt: async (size: number): Promise<string> => (await headAt(size, '')).note,

    size: async (): Promise<number> => (await currentHead()).size,

    consistencyProof: async (from: number, to: number): Promise<Uint8Array[]> =>
      consistencyProofFromTiles(from, to, await tileReader(db, tilesForConsistency(from, to))),

    /** Makes a checkpoint the one that counts as witnessed, once its cosignatures meet the policy. */
    publishIfQuorum,

    /** Null while the log has none: before the first pass of the sequencer. */
    async newestCheckpoint(): Promise<string | null> {
      const head = await readHead(db)
      return head ? checkpointOf(head) : null
    },

    async checkpoint({ witnessed = false } = {}): Promise<string> {
      const head = witnessed ? await witnessedHead() : await currentHead()
      if (!head) throw notFound('cosigned checkpoint')
      return checkpointOf(head)
    },

    /** The places of the receipts at these indexes, all proven against one checkpoint. */
    async places(indexes: readonly number[], { witnessed = false } = {}): Promise<Map<number, LogPlace>> {
      if (indexes.length === 0) return new Map()
      const head = witnessed ? await witnessedHead() : await currentHead()
      const covered = indexes.filter((index) => head && index < head.size)
      if (!head || covered.length === 0) return new Map()
      const proofs = await inclusion.prove(covered, head.size)
      const checkpoint = checkpointOf(head)
      return new Map(
        [...proofs].map(([index, inclusion_proof]) => [index, { origin, index, inclusion_proof, checkpoint }]),
      )
    },

    /** The root the log had at a size, or undefined for a size it has not reached. */
    async rootAt(size: number): Promise<Uint8Array | undefined> {
      const head = await currentHead()
      return size <= head.size ? rootAt(db, size) : undefined
    },

    async consistency(from: number, to?: number) {
      const head = await currentHead()
      const newSize = to ?? head.size
      if (newSize > head.size) throw invalid(`The log has ${head.size} entries, not ${newSize}.`)
      if (from > newSize) throw invalid('`from` must not be larger than `to`.')
      const read = await tileReader(db, tilesForConsistency(from, newSize))
      const proof = consistencyProofFromTiles(from, newSize, read).map(toBase64)
      return { origin, from, to: newSize, proof, checkpoint: checkpointOf(head) }
    },

    /** The bytes of a tile or an entry bundle at the requested width; `not_found` beyond the published checkpoint. */
    async tile(tile: Tile | EntryTile): Promise<Uint8Array> {
      const head = await currentHead()
      const level = tile.level === 'entries' ? 0 : tile.level
      const published = tileInTree(level, tile.index, head.size)
      if (!published || tile.width > published.width) throw notFound('tile')
      if (tile.level === 'entries') {
        const entries = await readEntries(db, tile.index * 256, tile.width)
        return encodeEntryBundle(entries.map(utf8))
      }
      const bytes = (await tileReader(db, [tile]))(tile)
      if (!bytes) throw notFound('tile')
      return bytes
    },

    /** Stores the cosignatures of known witnesses on one of our checkpoints. */
    async addCosignatures(note: string) {
      const head = await currentHead()
      const accepted = await acceptCosignatures(
        { db, origin, witnesses, now: clock.now(), rootAt: (size) => rootAt(db, size) },
        head.size,
        note,
      )
      await publishIfQuorum(accepted.size)
      return accepted
    },
  }
}

async function rootAt(tx: Tx, size: number): Promise<Uint8Array> {
  return size === 0 ? emptyRoot() : rootFromTiles(size, await tileReader(tx, tilesForRoot(size)))
}

/** Fetches tiles in one query; each can be read at any width it has had so far. */
async function tileReader(tx: Tx, tiles: readonly Tile[]): Promise<TileReader> {
  const distinct = new Map(tiles.map((tile) => [`${tile.level}/${tile.index}`, tile]))
  return toTileReader(distinct.size === 0 ? [] : await readTiles(tx, [...distinct.values()]))
}

function toTileReader(stored: readonly StoredTile[]): TileReader {
  const byPlace = new Map(stored.map(({ level, index, bytes }) => [`${level}/${index}`, bytes]))
  return (tile) => {
    const bytes = byPlace.get(`${tile.level}/${tile.index}`)
    if (!bytes || bytes.length < tile.width * HASH_BYTES) throw new Error(`${tilePath(tile)} is not stored.`)
    return bytes.subarray(0, tile.width * HASH_BYTES)
  }
}

const splitHashes = (hashes: Buffer): Uint8Array[] =>
  Array.from({ length: hashes.length / HASH_BYTES }, (_, place) =>
    hashes.subarray(place * HASH_BYTES, (place + 1) * HASH_BYTES),
  )
