import {
  appendToTiles,
  checkpointSignatureLine,
  checkpointText,
  consistencyProofFromTiles,
  type EntryTile,
  emptyRoot,
  encodeEntryBundle,
  formatNote,
  hashLeaf,
  rootFromTiles,
  type Tile,
  type TileReader,
  tileInTree,
  tilePath,
  tilesForConsistency,
  tilesForRoot,
  toBase64,
  utf8,
} from '@countersign/proof'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Signer } from '../../platform/keys.ts'
import { invalid, notFound, unavailable } from '../../platform/problem.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'
import { createInclusionProofs } from './inclusion-proofs.ts'
import {
  isAnyQueued,
  type LogHead,
  placeReceipts,
  readEntries,
  readHead,
  readQueue,
  readTiles,
  readWitnessed,
  writeHead,
  writeTiles,
} from './log.store.ts'
import { acceptCosignatures } from './witness.ts'

export type TransparencyLogDeps = {
  db: Db
  clock: Clock
  /** The log's name, for good: a checkpoint under another name is of another log. */
  origin: string
  /** The key in use first; a key that is being replaced signs along until nobody pins it any more. */
  signers: readonly Signer[]
  /** Verifier key lines of the witnesses whose cosignatures are taken. */
  witnesses: readonly string[]
}

/** A place in the log with its proof, as receipts carry it. */
export type LogPlace = { origin: string; index: number; inclusion_proof: string[]; checkpoint: string }

export type TransparencyLog = ReturnType<typeof createTransparencyLog>

const BATCH = 2_000
const HASH_BYTES = 32

/**
 * A C2SP tlog-tiles log kept in tables. Tiles only grow, so whatever was true of a smaller tree can be read from the
 * larger one, and a reader needs no snapshot: it reads the checkpoint first, then the tiles the checkpoint covers.
 */
export function createTransparencyLog({ db, clock, origin, signers, witnesses }: TransparencyLogDeps) {
  const inclusion = createInclusionProofs((tiles) => readTiles(db, tiles))
  let signedByUs = false

  const noteOf = (size: number, root: Uint8Array): string => {
    const text = checkpointText({ origin, size, root })
    return formatNote(
      text,
      signers.map((signer) => checkpointSignatureLine(origin, signer.publicKey, signer.sign(text))),
    )
  }

  const currentHead = async (): Promise<LogHead> => {
    const head = await readHead(db)
    if (!head) throw unavailable('The log has not been opened yet.')
    return head
  }

  const checkpointOf = (head: LogHead) => head.note + head.cosignatures

  /** The newest checkpoint that a witness cosigned; our own signature under it is made anew, and is the same. */
  const witnessedHead = async (): Promise<LogHead | undefined> => {
    const found = await readWitnessed(db)
    if (!found) return undefined
    const root = await rootAt(db, found.size)
    return { origin, root: Buffer.from(root), note: noteOf(found.size, root), ...found }
  }

  const task: SequencedTask = {
    name: 'receipt log',
    // Once in a process's life the checkpoint is looked at even without receipts, since the keys may be new.
    hasWork: async (look) => !signedByUs || (await isAnyQueued(look)),

    async processBatch(tx) {
      const head = await readHead(tx)
      const size = head?.size ?? 0
      const receipts = await readQueue(tx, BATCH)
      const edge = await tileReader(tx, tilesForRoot(size))
      const before = rootFromTiles(size, edge)
      if (head && !head.root.equals(before))
        throw new Error(`The stored tiles do not lead to the signed root of size ${size}; nothing is built on them.`)
      const leaves = receipts.map(({ body }) => hashLeaf(utf8(body)))
      const grown = leaves.length > 0 ? appendToTiles(size, edge, leaves) : { size, root: before, tiles: [] }
      const note = noteOf(grown.size, grown.root)
      if (receipts.length > 0) {
        await placeReceipts(
          tx,
          size,
          receipts.map(({ id }) => id),
        )
        await writeTiles(tx, grown.tiles)
      }
      if (note !== head?.note)
        await writeHead(tx, { origin, size: grown.size, root: Buffer.from(grown.root), note }, clock.now())
      signedByUs = true
    },
  }

  return {
    origin,
    task,

    /** A log keeps its name: a database that holds another log is not opened. */
    async open() {
      const head = await readHead(db)
      if (head && head.origin !== origin)
        throw new Error(`The log in this database is named '${head.origin}', not '${origin}'; a log keeps its name.`)
    },

    async checkpoint({ witnessed = false } = {}): Promise<string> {
      const head = witnessed ? await witnessedHead() : await currentHead()
      if (!head) throw notFound('cosigned checkpoint')
      return checkpointOf(head)
    },

    /** The places of receipts whose indexes are given, all proven against one checkpoint. */
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

    /** The root the log had at a size, or undefined when it never had it. */
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

    /** The bytes of a tile or an entry bundle, as wide as asked; not found beyond the published checkpoint. */
    async tile(wanted: Tile | EntryTile): Promise<Uint8Array> {
      const head = await currentHead()
      const level = wanted.level === 'entries' ? 0 : wanted.level
      const published = tileInTree(level, wanted.index, head.size)
      if (!published || wanted.width > published.width) throw notFound('tile')
      if (wanted.level === 'entries') {
        const entries = await readEntries(db, wanted.index * 256, wanted.width)
        return encodeEntryBundle(entries.map(utf8))
      }
      const bytes = (await tileReader(db, [wanted]))(wanted)
      if (!bytes) throw notFound('tile')
      return bytes
    },

    /** Takes the cosignatures that known witnesses put under a checkpoint of ours. */
    async addCosignatures(note: string) {
      const head = await currentHead()
      return acceptCosignatures(
        { db, origin, witnesses, now: clock.now(), rootAt: (size) => rootAt(db, size) },
        head.size,
        note,
      )
    },
  }
}

async function rootAt(tx: Tx, size: number): Promise<Uint8Array> {
  return size === 0 ? emptyRoot() : rootFromTiles(size, await tileReader(tx, tilesForRoot(size)))
}

/** Fetches tiles in one query; each may be asked for as wide as it was in any tree up to now. */
async function tileReader(tx: Tx, tiles: readonly Tile[]): Promise<TileReader> {
  const distinct = new Map(tiles.map((tile) => [`${tile.level}/${tile.index}`, tile]))
  const stored = distinct.size === 0 ? [] : await readTiles(tx, [...distinct.values()])
  const byPlace = new Map(stored.map(({ level, index, bytes }) => [`${level}/${index}`, bytes]))
  return (tile) => {
    const bytes = byPlace.get(`${tile.level}/${tile.index}`)
    if (!bytes || bytes.length < tile.width * HASH_BYTES) throw new Error(`${tilePath(tile)} is not stored.`)
    return bytes.subarray(0, tile.width * HASH_BYTES)
  }
}
