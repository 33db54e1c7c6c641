import { describe, expect, test } from 'vitest'
import { fillerHashes, LOG_ORIGIN, logKey, makeCheckpoint, testKey, untrustedKey } from '../test/fixtures.ts'
import { cosign, witnessVkey } from '../test/witnesses.ts'
import {
  formatVerifierKey,
  type LogPolicy,
  meetsQuorum,
  NOTE_ED25519,
  parseLogPolicy,
  verifyLogPolicy,
} from './proof.ts'

const logVkey = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })
const vkeys = Array.from({ length: 6 }, (_, i) => witnessVkey(`witness.example/w${i + 1}`, testKey(20 + i)))

const read = (text: string): LogPolicy => {
  const parsed = parseLogPolicy(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.policy
}
const reasonFor = (text: string) => {
  const parsed = parseLogPolicy(text)
  return parsed.ok ? 'accepted' : parsed.reason
}

/** The example of C2SP tlog-policy, with keys in it. */
const EXAMPLE = `log ${logVkey}

witness X1 ${vkeys[0]}
witness X2 ${vkeys[1]}
witness X3 ${vkeys[2]}
group X-witnesses 2 X1 X2 X3

witness Y1 ${vkeys[3]}
witness Y2 ${vkeys[4]}
witness Y3 ${vkeys[5]}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`

describe('the example policy of C2SP tlog-policy', () => {
  const policy = read(EXAMPLE)

  test('needs two of the first group and one of the second', () => {
    const isMet = (...names: string[]) => meetsQuorum(policy, new Set(names))
    expect([isMet('X1', 'X3', 'Y2'), isMet('X1', 'X2', 'X3', 'Y1')]).toEqual([true, true])
    expect([isMet('X1', 'Y1', 'Y2', 'Y3'), isMet('X1', 'X2', 'X3'), isMet()]).toEqual([false, false, false])
    // A group's name is not a witness: nobody can cosign in its name.
    expect(isMet('X-and-Y')).toBe(false)
  })

  test('comments, tabs, empty lines and addresses are read', () => {
    const text = `# logs\n\tlog\t${logVkey}  https://log.example/  \n  \t\nwitness w ${vkeys[0]} https://w.example/\nquorum w`
    const { logs, witnesses } = read(text)
    expect([logs[0]?.url, witnesses[0]?.url]).toEqual(['https://log.example/', 'https://w.example/'])
  })
})

test.each([
  ['no quorum', `log ${logVkey}\n`, 'no quorum line'],
  ['two quorums', 'quorum none\nquorum none\n', 'Line 2'],
  ['an unknown word', 'quorum none\nlogs x\n', "'logs' is none of"],
  ['a quorum before its definition', `quorum w\nwitness w ${vkeys[0]}\n`, 'not defined'],
  ['a group before its members', `group g any w\nwitness w ${vkeys[0]}\nquorum g\n`, 'not defined'],
  ['a circle', 'group g any g\nquorum g\n', 'not defined'],
  ['the name none', `witness none ${vkeys[0]}\nquorum none\n`, "'none' cannot be the name"],
  ['none as a member', 'group g any none\nquorum g\n', 'not defined'],
  ['a name twice', `witness w ${vkeys[0]}\nwitness w ${vkeys[1]}\nquorum w\n`, 'defined already'],
  ['a member twice', `witness w ${vkeys[0]}\ngroup g 2 w w\nquorum g\n`, 'a member of a group already'],
  ['a member of two groups', `witness w ${vkeys[0]}\ngroup g any w\ngroup h any w\nquorum g\n`, 'a member of a group'],
  ['a threshold of 0', `witness w ${vkeys[0]}\ngroup g 0 w\nquorum g\n`, "'0' must be"],
  ['a threshold above its members', `witness w ${vkeys[0]}\ngroup g 2 w\nquorum g\n`, "'2' must be"],
  ['a threshold with a sign', `witness w ${vkeys[0]}\ngroup g +1 w\nquorum g\n`, "'+1' must be"],
  ['an empty group', 'group g any\nquorum none\n', 'a group line is'],
  ['the key of a witness as a log', `log ${vkeys[0]}\nquorum none\n`, 'verifier key'],
  ['the key of a log as a witness', `witness w ${logVkey}\nquorum none\n`, 'verifier key'],
  ['a log twice', `log ${logVkey}\nlog ${logVkey}\nquorum none\n`, 'same public key'],
  [
    'one key under two names',
    `witness a ${vkeys[0]}\nwitness b ${witnessVkey('witness.example/other', testKey(20))}\nquorum a\n`,
    'same public key',
  ],
  ['two quorums', 'quorum none\nquorum none\n', 'there is a second quorum line'],
  ['no name of the quorum', 'quorum\n', 'a quorum line is'],
  ['no key of the log', 'log\nquorum none\n', 'a log line is'],
  ['more on the line of a log', `log ${logVkey} https://log.example/ more\nquorum none\n`, 'a log line is'],
  ['a log key that is none', 'log nonsense\nquorum none\n', 'verifier key'],
  ['no name of the witness', 'witness\nquorum none\n', 'a witness line is'],
  ['no key of the witness', 'witness w\nquorum none\n', 'a witness line is'],
  [
    'more on the line of a witness',
    `witness w ${vkeys[0]} https://w.example/ more\nquorum none\n`,
    'a witness line is',
  ],
  ['a witness key that is none', 'witness w nonsense\nquorum none\n', 'verifier key'],
  ['no name of the group', 'group\nquorum none\n', 'a group line is'],
  ['no threshold', 'group g\nquorum none\n', 'a group line is'],
  ['a threshold with a letter', `witness w ${vkeys[0]}\ngroup g 1x w\nquorum g\n`, "'1x' must be"],
  ['a word that ends like a comment', 'logs# x\nquorum none\n', "'logs#' is none of"],
  ['a delete character', 'quorum none\u007f\n', 'control characters'],
  ['more text than the limit', 'quorum none\n'.padEnd(262_145, '#'), 'This is not a policy.'],
  ['a carriage return', 'quorum none\r\n', 'control characters'],
  ['more on a line', 'quorum none none\n', 'a quorum line is'],
])('a policy with %s is refused with its line', (_, text, reason) => {
  expect(reasonFor(text)).toContain(reason)
})

test('a policy is a text, and may be as long as the limit', () => {
  expect(reasonFor('quorum none\n'.padEnd(262_144, '#'))).toBe('accepted')
  for (const value of [undefined, null, 7, {}])
    expect(parseLogPolicy(value)).toEqual({ ok: false, reason: 'This is not a policy.' })
})

test('a policy may have 256 definitions and its quorum after them, and not one more', () => {
  const chain = (length: number) =>
    Array.from({ length }, (_, i) => `group g${i + 1} any ${i === 0 ? 'w' : `g${i}`}\n`).join('')
  const witnesses = `log ${logVkey}\nwitness w ${vkeys[0]}\nwitness v ${vkeys[1]}\n`
  expect(reasonFor(`${witnesses}${chain(253)}quorum g253\n`)).toBe('accepted')
  expect(reasonFor(`${witnesses}${chain(254)}quorum g254\n`)).toBe(
    'Line 257 of the policy: a policy defines at most 256 logs, witnesses and groups.',
  )
})

test.each([
  ['any', 1],
  ['all', 3],
  ['1', 1],
  ['3', 3],
])('the threshold %s of three is %i', (threshold, count) => {
  const lines = ['a', 'b', 'c'].map((name, i) => `witness ${name} ${vkeys[i]}\n`).join('')
  const policy = read(`${lines}group g ${threshold} a b c\nquorum g\n`)
  expect(meetsQuorum(policy, new Set(['a', 'b', 'c'].slice(0, count)))).toBe(true)
  expect(meetsQuorum(policy, new Set(['a', 'b', 'c'].slice(0, count - 1)))).toBe(false)
})

describe('a checkpoint against a policy', () => {
  const policy = read(EXAMPLE)
  const note = makeCheckpoint(fillerHashes(7))
  const at = 1_794_000_000
  const now = new Date(at * 1000 + 5_000)
  const cosigned = (...places: number[]) =>
    note + places.map((i) => cosign(note, `witness.example/w${i + 1}`, testKey(20 + i), at)).join('')

  test('is accepted with the quorum and refused without it', () => {
    const full = verifyLogPolicy(cosigned(0, 1, 3), { policy, now })
    expect(full).toMatchObject({ ok: true, missing: ['X3', 'Y2', 'Y3'], invalid: [] })
    expect(full.cosignatures).toEqual(['X1', 'X2', 'Y1'].map((name) => ({ name, time: at })))
    expect(full.reason).toBe(`Signed by ${LOG_ORIGIN}. Cosigned by X1, X2, Y1; the quorum 'X-and-Y' is met.`)
    expect(verifyLogPolicy(cosigned(0, 1), { policy, now })).toMatchObject({
      ok: false,
      missing: ['X3', 'Y1', 'Y2', 'Y3'],
      reason: "Cosigned by X1, X2; the quorum 'X-and-Y' is not met.",
    })
    expect(verifyLogPolicy(note, { policy, now }).reason).toBe("Cosigned by nobody; the quorum 'X-and-Y' is not met.")
  })

  test('is refused when a cosignature in the name of a witness is false, even beside a quorum', () => {
    const forged = cosigned(0, 1, 3) + cosign(note, 'witness.example/w3', testKey(22), at, untrustedKey)
    expect(verifyLogPolicy(forged, { policy, now })).toMatchObject({
      ok: false,
      invalid: ['X3'],
      reason: "The cosignature in the name of 'witness.example/w3' does not verify.",
    })
    const besideItsOwn = cosigned(0, 1, 2, 3) + cosign(note, 'witness.example/w3', testKey(22), at, untrustedKey)
    const { cosignatures, missing } = verifyLogPolicy(besideItsOwn, { policy, now })
    expect([cosignatures.map(({ name }) => name), missing]).toEqual([
      ['X1', 'X2', 'Y1'],
      ['X3', 'Y2', 'Y3'],
    ])
  })

  test('is refused when the cosignatures are of another checkpoint, or too old, or of the future', () => {
    const other = makeCheckpoint(fillerHashes(6))
    const moved = note + [0, 1, 3].map((i) => cosign(other, `witness.example/w${i + 1}`, testKey(20 + i), at)).join('')
    expect(verifyLogPolicy(moved, { policy, now }).invalid).toEqual(['X1', 'X2', 'Y1'])
    expect(verifyLogPolicy(cosigned(0, 1, 3), { policy, now, maxAgeSeconds: 4 })).toMatchObject({
      ok: false,
      invalid: [],
    })
    expect(verifyLogPolicy(cosigned(0, 1, 3), { policy, now, maxAgeSeconds: 5 }).ok).toBe(true)
    const renewed = cosigned(0, 1, 3) + cosign(note, 'witness.example/w1', testKey(20), at - 100)
    expect(verifyLogPolicy(renewed, { policy, now, maxAgeSeconds: 5 })).toMatchObject({
      ok: true,
      cosignatures: [{ name: 'X1', time: at }, { name: 'X2' }, { name: 'Y1' }],
    })
    const early = new Date((at - 301) * 1000)
    expect(verifyLogPolicy(cosigned(0, 1, 3), { policy, now: early }).ok).toBe(false)
  })

  test('is refused when the log did not sign it, or is not a log of the policy', () => {
    expect(verifyLogPolicy(makeCheckpoint(fillerHashes(7), untrustedKey), { policy, now }).checkpoint).toBeUndefined()
    const other = verifyLogPolicy(makeCheckpoint(fillerHashes(7), logKey, 'another.example/log'), { policy, now })
    expect(other.reason).toContain("lists no log 'another.example/log'")
    expect(verifyLogPolicy('nonsense', { policy, now })).toEqual({
      ok: false,
      reason: 'This is not a checkpoint in the signed note format.',
      cosignatures: [],
      missing: ['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3'],
      invalid: [],
    })
  })

  test('a policy that lists no logs takes the keys that are given, and no others', () => {
    const withoutLogs = read('quorum none\n')
    expect(verifyLogPolicy(note, { policy: withoutLogs, keys: [logVkey] }).ok).toBe(true)
    expect(verifyLogPolicy(note, { policy: withoutLogs }).reason).toContain('lists no log')
    expect(
      verifyLogPolicy(makeCheckpoint(fillerHashes(7), untrustedKey), { policy, keys: [untrustedKey.jwk] }).ok,
    ).toBe(false)
  })

  test('without a quorum the signature of the log is enough', () => {
    expect(verifyLogPolicy(note, { policy: read(`log ${logVkey}\nquorum none\n`), now }).ok).toBe(true)
  })
})
