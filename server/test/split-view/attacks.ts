import {
  cosignatureLine,
  cosignatureMessage,
  memoryCheckpoints,
  parseCheckpoint,
  rememberCheckpoint,
  verifyLogEvidence,
  verifyLogPolicy,
} from '@countersign/proof'
import type { Finding } from '../../../cli/src/log-monitor.ts'
import { untrustedKey } from '../../../proof/test/fixtures.ts'
import { createMonitor, growHonestly, type Look, MAX_LAG_SECONDS, type View, WITNESSES, type World } from './world.ts'

/** What caught an attack: findings of the monitor, or a verifier. */
export type Catch = { findings: Finding[]; verifier?: boolean }

const appended = (world: World, entries: readonly string[], label = 'more') => [
  ...entries,
  ...Array.from({ length: 1 + world.random.below(5) }, (_, i) => `${label} ${world.seed}.${i}`),
]

/** Another history: one entry is replaced. */
function fork(world: World, entries: readonly string[], below = entries.length): string[] {
  const index = world.random.below(below)
  return entries.map((entry, place) => (place === index ? `forged ${entry}` : entry))
}

/** The log shows another history to the monitor than before. */
async function forkShown(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look)
  const forged = fork(world, honest.entries)
  const entries = world.random.chance(0.5) ? forged : appended(world, forged)
  world.advance(5)
  // Witnesses that were asked for the true history refuse this one.
  const { note, count } = await world.cosign(entries)
  if (count > 0) throw new Error('A witness cosigned a fork.')
  const isCosignedShown = world.random.chance(0.5)
  const view: View = { entries, newest: note, cosigned: isCosignedShown ? honest.cosigned : note }
  const findings = await look(() => view)
  return { findings, verifier: await isObjected(world, honest.newest, note, entries) }
}

/** The monitor and the witnesses are shown different histories from the beginning of the fork. */
async function splitView(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look)
  const forWitnesses = appended(world, honest.entries, 'public')
  const forMonitor = appended(world, honest.entries, 'secret')
  world.advance(5)
  const { note, count } = await world.cosign(forWitnesses)
  if (count !== WITNESSES) throw new Error('The public branch was not cosigned.')
  const newest = world.sign(forMonitor)
  // Nothing can be shown as cosigned but what was: the other branch, or a checkpoint without its quorum.
  const cosigned = world.random.chance(0.5) ? note : newest
  return { findings: await look(() => ({ entries: forMonitor, newest, cosigned })) }
}

async function rollback(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look, { rounds: world.rounds ?? 2 })
  const size = 1 + world.random.below(honest.entries.length - 1)
  const entries = honest.entries.slice(0, size)
  world.advance(5)
  const newest = world.sign(entries)
  const onlyCosigned = world.random.chance(0.3)
  const view: View = onlyCosigned
    ? { entries: honest.entries, newest: honest.newest, cosigned: oldCosigned(world, entries) }
    : { entries, newest, cosigned: oldCosigned(world, entries) }
  const verifier = onlyCosigned ? undefined : await isObjected(world, honest.newest, newest, entries)
  return { findings: await look(() => view), verifier }
}

/** A checkpoint that was cosigned when the log had this size; made with the witnesses' own keys, dated then. */
function oldCosigned(world: World, entries: readonly string[]): string {
  const note = world.sign(entries)
  const time = Math.floor(world.clock.now.getTime() / 1000) - 600
  return note + world.keys.map((key) => lineOf(world, note, key, time)).join('')
}

const lineOf = (_: World, note: string, key: World['keys'][number], time: number, forged = false): string => {
  const message = cosignatureMessage(parseCheckpoint(note)!.note.text, time)
  return cosignatureLine(key, time, forged ? untrustedKey.sign(message) : key.sign(message))
}

async function withheldEntry(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look)
  const entries = appended(world, honest.entries)
  world.advance(5)
  const { note } = await world.cosign(entries)
  const index = honest.entries.length + world.random.below(entries.length - honest.entries.length)
  const shown = world.random.chance(0.4) ? null : world.random.chance(0.5) ? '' : `another ${world.seed}`
  const view: View = { entries, newest: world.sign(entries), cosigned: note, withheld: { index, shown } }
  return { findings: await look(() => view) }
}

/** A witness that stands still: it gives nothing, or the cosignature of an old tree, and the log may pass that on. */
async function staleWitness(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look)
  const entries = appended(world, honest.entries)
  const stale = world.random.below(WITNESSES)
  const others = world.keys.map((_, i) => i).filter((i) => i !== stale)
  world.advance(5)
  const mode = world.random.below(3)
  if (mode === 2) {
    // Two stand still: there is no quorum, and the newest tree waits for it.
    await look(() => ({ entries, newest: world.sign(entries), cosigned: honest.cosigned }))
    world.advance(MAX_LAG_SECONDS + 1)
    const later = appended(world, entries, 'later')
    return { findings: await look(() => ({ entries: later, newest: world.sign(later), cosigned: honest.cosigned })) }
  }
  const { note } = await world.cosign(entries, others)
  const old = honest.cosigned.split('\n').find((line) => line.startsWith(`— ${world.keys[stale]!.name} `))!
  const cosigned = mode === 0 ? note : `${note}${old}\n`
  return { findings: await look(() => ({ entries, newest: world.sign(entries), cosigned })) }
}

/** A witness that signs what it should not: false signatures, dates out of order or of the future, or both sides of a fork. */
async function lyingWitness(world: World, look: Look): Promise<Catch> {
  const honest = await growHonestly(world, look)
  const entries = appended(world, honest.entries)
  const liar = world.random.below(WITNESSES)
  const key = world.keys[liar]!
  const others = world.keys.map((_, i) => i).filter((i) => i !== liar)
  world.advance(5)
  const time = Math.floor(world.clock.now.getTime() / 1000)
  const mode = world.random.below(4)
  if (mode === 3) {
    const forged = appended(world, fork(world, honest.entries))
    const note = world.sign(forged) + world.keys.map((each) => lineOf(world, world.sign(forged), each, time)).join('')
    const findings = await look(() => ({ entries: forged, newest: note, cosigned: note }))
    // All three signed both histories; the evidence names them.
    const evidence = findings.find((finding) => finding.evidence)?.evidence
    const seen = evidence && { ...evidence, checkpoints: [honest.cosigned, note] }
    const { ok, checks } = verifyLogEvidence(seen, { policy: world.policy })
    return { findings, verifier: ok && checks.some(({ name }) => name === 'double_cosigners') }
  }
  const { note } = await world.cosign(entries, others)
  const lies = [
    lineOf(world, note, key, time, true),
    lineOf(world, note, key, time + 1_000),
    lineOf(world, note, key, time - 500),
  ]
  const cosigned = note + lies[mode]
  const verified = verifyLogPolicy(cosigned, { policy: world.policy, now: world.clock.now })
  return {
    findings: await look(() => ({ entries, newest: world.sign(entries), cosigned })),
    ...(mode < 2 && { verifier: !verified.ok && verified.invalid.length === 1 }),
  }
}

/** Whether a reader that remembers the first checkpoint objects to the second. */
async function isObjected(world: World, first: string, second: string, entries: readonly string[]): Promise<boolean> {
  const store = memoryCheckpoints()
  const { consistencyProof, hashLeaf, toBase64, utf8 } = await import('@countersign/proof')
  const hashes = entries.map((entry) => hashLeaf(utf8(entry)))
  const options = {
    store,
    origin: parseCheckpoint(first)!.origin,
    keys: [world.logVerifierKey],
    now: world.clock.now,
    fetchConsistency: async (from: number, to: number) =>
      to > hashes.length ? [] : consistencyProof(hashes.slice(0, to), from).map(toBase64),
  }
  await rememberCheckpoint(first, options)
  const { check } = await rememberCheckpoint(second, { ...options, before: first })
  return check.ok === false
}

/** Each attack with the kinds of findings that count as having caught it. */
export const attacks = {
  fork: { run: forkShown, kinds: ['fork'] },
  'split view': { run: splitView, kinds: ['fork', 'quorum', 'unproven'] },
  rollback: { run: rollback, kinds: ['rollback', 'fork'] },
  'withheld entry': { run: withheldEntry, kinds: ['withheld_entry'] },
  'stale witness': { run: staleWitness, kinds: ['witness', 'quorum'] },
  'lying witness': { run: lyingWitness, kinds: ['witness', 'fork'] },
} as const satisfies Record<string, { run: (world: World, look: Look) => Promise<Catch>; kinds: readonly string[] }>

export type AttackName = keyof typeof attacks

/** Throws when the attack was not caught at the first look, or its evidence does not verify. */
export async function expectCaught(name: AttackName, world: World, look: Look = createMonitor(world)) {
  const { run, kinds } = attacks[name]
  const { findings, verifier } = await run(world, look)
  const caught = findings.filter(({ kind }) => (kinds as readonly string[]).includes(kind))
  if (caught.length === 0) throw new Error(`seed ${world.seed}: ${name} was not caught (${JSON.stringify(findings)})`)
  if (verifier === false) throw new Error(`seed ${world.seed}: ${name} passed a verifier`)
  for (const { kind, evidence } of findings)
    if (evidence && !verifyLogEvidence(evidence, { policy: world.policy }).ok)
      throw new Error(`seed ${world.seed}: the evidence of ${kind} does not verify`)
  const needsEvidence = ['fork', 'rollback', 'withheld entry'].includes(name)
  if (needsEvidence && !caught.some(({ evidence }) => evidence))
    throw new Error(`seed ${world.seed}: ${name} left no evidence`)
}

/**
 * An honest log with everything that honest logs do: it grows between two requests, witnesses start again or are away for
 * a round, the quorum comes later than the tree. Throws when anything is found that is not so.
 */
export async function expectNothingFalse(world: World, look: Look = createMonitor(world)) {
  const { random } = world
  let view: View = await growHonestly(world, look, { rounds: 1, atLeast: 0 })
  const rounds = world.rounds ?? 1 + random.below(2)
  for (let round = 0; round < rounds; round += 1) {
    world.advance(1 + random.below(15))
    const entries = random.chance(0.8) ? appended(world, view.entries, `round ${round}`) : view.entries
    const away = random.chance(0.3) ? random.below(WITNESSES) : undefined
    if (random.chance(0.2)) world.restartWitnesses()
    const who = world.keys.map((_, i) => i).filter((i) => i !== away)
    const before = view
    const { note } = await world.cosign(entries, who)
    const next: View = { entries, newest: world.sign(entries), cosigned: note }
    // The quorum of the newest tree may not be there yet, and the log may have grown between two requests.
    const mode = random.below(3)
    const shown: View = mode === 1 ? { ...next, cosigned: before.cosigned } : next
    let requests = 0
    const findings = await look(() => {
      requests += 1
      return mode === 2 && requests === 1 ? before : shown
    })
    // That a witness was away is said of those whose cosignature is not under the checkpoint, and of nobody else.
    const isAway = ({ kind, severity, message }: Finding) =>
      kind === 'witness' &&
      severity === 'warning' &&
      world.keys.some(({ name }, i) => message.includes(`'w${i + 1}'`) && !shown.cosigned!.includes(`— ${name} `))
    const unexpected = findings.filter((finding) => !isAway(finding))
    if (unexpected.length > 0)
      throw new Error(`seed ${world.seed}: an honest log was accused: ${unexpected[0]!.message}`)
    view = next
  }
}
