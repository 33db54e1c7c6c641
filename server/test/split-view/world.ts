import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  consistencyProof,
  encodeEntryBundle,
  formatAddCheckpoint,
  formatVerifierKey,
  hashLeaf,
  type LogPolicy,
  NOTE_ED25519,
  parseLogPolicy,
  parseTilePath,
  rootOfLeafHashes,
  TILE_WIDTH,
  utf8,
} from '@countersign/proof'
import { checkLog, type Finding, type LogReader, type MonitorState } from '../../../cli/src/log-monitor.ts'
import { createWitness, openWitnessKey, type WitnessAnswer, type WitnessKey } from '../../../cli/src/witness.ts'
import { makeCheckpoint, testKey } from '../../../proof/test/fixtures.ts'

export const WITNESSES = 3
export const MAX_LAG_SECONDS = 60

/** Witnesses sync each answer to the disk, which for thousands of worlds may be one in memory. */
const MEMORY_FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** Numbers that a seed decides (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = state
    value = Math.imul(value ^ (value >>> 15), value | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
  return { below: (limit: number) => Math.floor(next() * limit), chance: (share: number) => next() < share }
}
export type Random = ReturnType<typeof createRandom>

/** What a log shows to one reader. */
export type View = {
  entries: readonly string[]
  newest: string
  cosigned: string | undefined
  /** What it shows for an entry instead of its content; null shows no bundle at all. */
  withheld?: { index: number; shown: string | null }
}

const leafHashes = (entries: readonly string[]) => entries.map((entry) => hashLeaf(utf8(entry)))

/** The log of a view over the paths of C2SP tlog-tiles. */
export const createReader =
  (view: () => View): LogReader =>
  async (path) => {
    const { entries, newest, cosigned, withheld } = view()
    if (path === 'checkpoint') return utf8(newest)
    if (path === 'checkpoint?witnessed=true') return cosigned === undefined ? undefined : utf8(cosigned)
    const tile = parseTilePath(path)
    if (!tile) return undefined
    if (tile.level === 'entries') {
      const first = tile.index * TILE_WIDTH
      const isWithheld = withheld && withheld.index >= first && withheld.index < first + tile.width
      if (isWithheld && withheld.shown === null) return undefined
      const shown = entries
        .slice(first, first + tile.width)
        .map((entry, place) => (isWithheld && first + place === withheld.index ? withheld.shown! : entry))
      return shown.length < tile.width ? undefined : encodeEntryBundle(shown.map(utf8))
    }
    const width = TILE_WIDTH ** tile.level
    const hashes = Array.from({ length: tile.width }, (_, place) => {
      const start = (tile.index * TILE_WIDTH + place) * width
      return rootOfLeafHashes(leafHashes(entries.slice(start, start + width)))
    })
    return Buffer.concat(hashes)
  }

export type Submit = (witness: number, body: string) => Promise<WitnessAnswer>

/** The log, its key and three witnesses. The witnesses are those of the command line, in this process or in their own. */
export type World = Awaited<ReturnType<typeof createWorld>>

export async function createWorld(
  seed: number,
  options: { submit?: Submit; witnessKeys?: WitnessKey[]; now?: Date; rounds?: number } = {},
) {
  const random = createRandom(seed)
  const logKey = testKey((seed % 200) + 1)
  const origin = `log.example/split-view-${seed}`
  const logVerifierKey = formatVerifierKey({ name: origin, type: NOTE_ED25519, publicKey: logKey.publicKey })
  const folder = mkdtempSync(join(MEMORY_FOLDER, 'countersign-split-view-'))
  const clock = { now: options.now ?? new Date('2026-11-16T10:00:00Z') }
  const keys =
    options.witnessKeys ??
    Array.from({ length: WITNESSES }, (_, i) => openWitnessKey(join(folder, `w${i}.key`), `witness.example/w${i + 1}`))
  const makeWitness = (i: number) =>
    createWitness({
      key: keys[i]!,
      logs: [logVerifierKey],
      folder: join(folder, `state-${i}`),
      lock: { assertHeld() {} },
      now: () => clock.now,
    })
  let witnesses = options.submit ? [] : keys.map((_, i) => makeWitness(i))
  const submit: Submit = options.submit ?? ((i, body) => witnesses[i]!.addCheckpoint(body))

  const policyText = [
    `log ${logVerifierKey}`,
    ...keys.map(({ verifierKey }, i) => `witness w${i + 1} ${verifierKey}`),
    `group g 2 ${keys.map((_, i) => `w${i + 1}`).join(' ')}`,
    'quorum g',
    '',
  ].join('\n')
  const parsed = parseLogPolicy(policyText)
  if (!parsed.ok) throw new Error(parsed.reason)
  const policy: LogPolicy = parsed.policy

  const signed = new Map<string, string>()
  const sign = (entries: readonly string[]): string => {
    const content = entries.join('\n')
    const note = signed.get(content) ?? makeCheckpoint(leafHashes(entries), logKey, origin)
    signed.set(content, note)
    return note
  }

  const knownSizes: (number | undefined)[] = []

  /** Sends a checkpoint to a witness as the log does: with the proof from the size that the witness names. */
  const requestCosignature = async (i: number, entries: readonly string[]): Promise<WitnessAnswer> => {
    const checkpoint = sign(entries)
    const request = (oldSize: number) =>
      submit(i, formatAddCheckpoint({ oldSize, proof: consistencyProof(leafHashes(entries), oldSize), checkpoint }))
    const known = knownSizes[i] ?? 0
    let answer = await request(Math.min(known, entries.length))
    if (answer.status === 409 && answer.type === 'text/x.tlog.size' && Number(answer.body) <= entries.length)
      answer = await request(Number(answer.body))
    if (answer.status === 200) knownSizes[i] = entries.length
    return answer
  }

  return {
    seed,
    /** How often an honest log grows before it is attacked; a number that the seed decides when it is undefined. */
    rounds: options.rounds,
    random,
    clock,
    keys,
    logKey,
    logVerifierKey,
    policy,
    policyText,
    sign,
    requestCosignature,
    /** The checkpoint with the cosignatures of these witnesses; undefined when fewer than the quorum gave one. */
    async cosign(entries: readonly string[], who: readonly number[] = keys.map((_, i) => i)) {
      const answers = await Promise.all(who.map((i) => requestCosignature(i, entries)))
      const lines = answers.filter(({ status }) => status === 200).map(({ body }) => body)
      return { note: sign(entries) + lines.join(''), count: lines.length }
    },
    advance: (seconds: number) => {
      clock.now = new Date(clock.now.getTime() + seconds * 1000)
    },
    /** Witnesses that start again from what they wrote to the disk. */
    restartWitnesses() {
      if (!options.submit) witnesses = keys.map((_, i) => makeWitness(i))
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A monitor in this process, with the state that the command keeps in a file. */
export function createMonitor(world: Pick<World, 'policy' | 'clock'>) {
  let state: MonitorState | undefined
  return async (view: () => View): Promise<Finding[]> => {
    const report = await checkLog({
      read: createReader(view),
      policy: world.policy,
      state,
      now: world.clock.now,
      maxLagSeconds: MAX_LAG_SECONDS,
    })
    state = report.state
    return report.findings
  }
}

export type Look = (view: () => View) => Promise<Finding[]>

/** An honest log that has grown for a while, as every reader sees it. */
export async function growHonestly(
  world: World,
  look: Look,
  { rounds = world.rounds ?? 1 + world.random.below(2), atLeast = 2 } = {},
): Promise<View & { cosigned: string }> {
  const { random } = world
  let entries: string[] = []
  let view: (View & { cosigned: string }) | undefined
  for (let round = 0; round < rounds; round += 1) {
    const growth = (round === 0 ? atLeast : 1) + random.below(random.chance(0.03) ? 300 : 9)
    entries = [...entries, ...Array.from({ length: growth }, (_, i) => `entry ${world.seed}.${round}.${i}`)]
    world.advance(1 + random.below(20))
    const { note, count } = await world.cosign(entries)
    if (count !== WITNESSES) throw new Error(`Only ${count} witnesses cosigned an honest tree.`)
    view = { entries, newest: world.sign(entries), cosigned: note }
    const findings = await look(() => view!)
    if (findings.length > 0) throw new Error(`An honest log was accused: ${findings[0]!.message}`)
  }
  return view!
}
