import {
  appendToTiles,
  checkpointSignatureLine,
  checkpointText,
  consistencyProofFromTiles,
  type EntryTile,
  emptyRoot,
  encodeEntryBundle,
  formatNote,
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
import type { JournalConsumer } from '../../platform/journal.ts'
import type { Signer } from '../../platform/keys.ts'
import { invalid, notFound, unavailable } from '../../platform/problem.ts'
import { createInclusionProofs, type StoredTile } from './inclusion-proofs.ts'
import {
  type LogHead,
  partsSince,
  readAppendState,
  readEntries,
  readHead,
  readNewestCosignatures,
  readTiles,
  writeAppend,
} from './log.store.ts'
import { acceptCosignatures } from './witness.ts'

export type TransparencyLogDeps = {
  db: Db
  clock: Clock
  /** The log's permanent name: a checkpoint under another name belongs to another log. */
  origin: string
  /** The key in use first, then keys being replaced, which sign until no reader pins them any more. */
  signers: readonly Signer[]
  /** Verifier key lines of the witnesses whose cosignatures are accepted. */
  witnesses: readonly string[]
}

/** A place in the log with its proof, as receipts carry it. */
export type LogPlace = { origin: string; index: number; inclusion_proof: string[]; checkpoint: string }

export type TransparencyLog = ReturnType<typeof createTransparencyLog>

const HASH_BYTES = 32

/**
 * A C2SP tlog-tiles log kept in tables. Tiles only grow, so any smaller tree can be read from the tiles of a larger
 * one. A reader needs no snapshot: it reads the checkpoint first, then the tiles that the checkpoint covers.
 */
export function createTransparencyLog({ db, clock, origin, signers, witnesses }: TransparencyLogDeps) {
  const inclusion = createInclusionProofs((tiles) => readTiles(db, tiles))
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

  /** The newest cosigned checkpoint. It is signed again, which gives the same signature. */
  const witnessedHead = async (): Promise<LogHead | undefined> => {
    const cosigned = await readNewestCosignatures(db)
    if (!cosigned) return undefined
    const root = await rootAt(db, cosigned.size)
    return { origin, root: Buffer.from(root), note: noteOf(cosigned.size, root), ...cosigned }
  }

  const consumer: JournalConsumer = {
    name: 'receipt log',
    column: 'receipt_id',
    // The first pass of a process runs even without receipts, because the keys may be new.
    isDue: () => !hasSigned,

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
      const note = noteOf(newTree.size, newTree.root)
      if (note !== head?.note) {
        const newHead = { origin, size: newTree.size, root: Buffer.from(newTree.root), note }
        const oldLength = (tile: Tile) =>
          tiles.find(({ level, index }) => level === tile.level && index === tile.index)?.bytes.length ?? 0
        const parts = newTree.tiles.flatMap(({ tile, bytes }) => partsSince(tile, bytes, oldLength(tile)))
        await writeAppend(tx, { first: size, ids, parts, head: newHead, at: clock.now() })
      }
      hasSigned = true
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
    },

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
