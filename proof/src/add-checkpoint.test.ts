import { describe, expect, test } from 'vitest'
import { fillerHashes, LOG_ORIGIN, logKey, makeCheckpoint, untrustedKey } from '../test/fixtures.ts'
import {
  consistencyProof,
  decideAddCheckpoint,
  emptyRoot,
  formatAddCheckpoint,
  formatVerifierKey,
  fromBase64,
  fromHex,
  MAX_ADD_CHECKPOINT_LENGTH,
  NOTE_ED25519,
  parseAddCheckpoint,
  parseCheckpoint,
  rootOfLeafHashes,
} from './proof.ts'

const logVkey = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })

/** The example request of C2SP tlog-witness. */
const EXAMPLE = `old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
`

test('the example request of C2SP tlog-witness is read, and written again byte for byte', () => {
  const request = parseAddCheckpoint(EXAMPLE)!
  expect([request.oldSize, request.proof.length, parseCheckpoint(request.checkpoint)?.size]).toEqual([
    20852014, 4, 20852163,
  ])
  expect(formatAddCheckpoint(request)).toBe(EXAMPLE)
})

test.each([
  ['nothing', ''],
  ['no blank line', EXAMPLE.split('\n\n')[0]!],
  ['a text before the old line', `x${EXAMPLE}`],
  ['no old line', EXAMPLE.replace('old 20852014\n', '')],
  ['a leading zero', EXAMPLE.replace('old 2', 'old 02')],
  ['a negative size', EXAMPLE.replace('old 2', 'old -2')],
  ['two spaces', EXAMPLE.replace('old ', 'old  ')],
  ['a hash that is short', EXAMPLE.replace('PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=', 'PlRN')],
  ['a hash that is not base64', EXAMPLE.replace('PlRN', '!!!!')],
  ['a carriage return', EXAMPLE.replace('old 20852014\n', 'old 20852014\r\n')],
  ['64 hashes', `old 1\n${'5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=\n'.repeat(64)}\n${EXAMPLE.split('\n\n')[1]}`],
  ['a body that is too long', EXAMPLE + '—'.repeat(70_000)],
  ['a body that is no text', 7],
  ['no body', undefined],
])('a request with %s is malformed', (_, body) => {
  expect(parseAddCheckpoint(body)).toBeUndefined()
  expect(decideAddCheckpoint(body, { logs: [logVkey], latest: () => undefined }).status).toBe(400)
})

test('a request may have 63 hashes and be as long as the limit, and not more', () => {
  const [hash] = parseAddCheckpoint(EXAMPLE)!.proof
  const { checkpoint } = parseAddCheckpoint(EXAMPLE)!
  const full = formatAddCheckpoint({ oldSize: 1, proof: Array.from({ length: 63 }, () => hash!), checkpoint })
  expect(parseAddCheckpoint(full)?.proof).toHaveLength(63)
  expect(parseAddCheckpoint(EXAMPLE.padEnd(MAX_ADD_CHECKPOINT_LENGTH, 'x'))).toBeDefined()
  expect(parseAddCheckpoint(EXAMPLE.padEnd(MAX_ADD_CHECKPOINT_LENGTH + 1, 'x'))).toBeUndefined()
  for (const request of [
    { oldSize: -1, proof: [] },
    { oldSize: 1.5, proof: [hash!] },
    { oldSize: 1, proof: Array.from({ length: 64 }, () => hash!) },
    { oldSize: 1, proof: [hash!, 'PlRN'] },
  ])
    expect(() => formatAddCheckpoint({ ...request, checkpoint })).toThrow('at most 63 hashes')
})

/** Requests that litewitness (filippo.io/torchwood) accepts in its own tests, with the key of its test log. */
describe('the requests of another author’s witness', () => {
  const origin = 'sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562'
  const publicKey = fromHex('ffdc2d4d98e4124d3feaf788c0c2f9abfd796083d1f0495437f302ec79cf100f')
  const logs = [formatVerifierKey({ name: origin, type: NOTE_ED25519, publicKey })]
  const request = (old: number, proof: string[], size: number, root: string, signature: string) =>
    `old ${old}\n${proof.map((hash) => `${hash}\n`).join('')}\n${origin}\n${size}\n${root}\n\n— ${origin} ${signature}\n`
  const first = request(
    0,
    [],
    1,
    'KgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    'UgIom7fPZTqpxWWhyjWduBvTvGVqsokMbqTArsQilegKoFBJQjUFAmQ0+YeSPM3wfUQMFSzVnnNuWRTYrajXpNUbIQY=',
  )
  const third = request(
    1,
    ['KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', 'KgIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='],
    3,
    'RcCI1Nk56ZcSmIEfIn0SleqtV7uvrlXNccFx595Iwl0=',
    'UgIom2VbtIcdFbwFAy1n7s6IkAxIY6J/GQOTuZF2ORV39d75cbAj2aQYwyJre36kezNobZs4SUUdrcawfAB8WVrx6go=',
  )
  const fifth = request(
    1,
    [
      'KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
      '+fUDV+k970B4I3uKrqJM4aP1lloPZP8mvr2Z4wRw2LI=',
      'KgQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    ],
    5,
    'QrtXrQZCCvpIgsSmOsah7HdICzMLLyDfxToMql9WTjY=',
    'UgIomw/EOJmWi0i1FQsOj+etB7F8IccFam/jgd6wzRns4QPVmyEZtdvl1U2KEmLOZ/ASRcWJi0tW90dJWAShei7sDww=',
  )
  const tree = (size: number, root: string) => () => ({ size, root: fromBase64(root) })
  const one = tree(1, 'KgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=')

  test('are accepted from the state in which it accepts them', () => {
    expect(decideAddCheckpoint(first, { logs, latest: () => undefined }).status).toBe(200)
    expect(decideAddCheckpoint(third, { logs, latest: one }).status).toBe(200)
    expect(decideAddCheckpoint(fifth, { logs, latest: one }).status).toBe(200)
  })

  test('the one that lost the race gets the size that is stored', () => {
    const five = tree(5, 'QrtXrQZCCvpIgsSmOsah7HdICzMLLyDfxToMql9WTjY=')
    expect(decideAddCheckpoint(third, { logs, latest: five })).toMatchObject({ status: 409, size: 5, isFork: false })
  })
})

describe('what a witness answers', () => {
  const leaves = fillerHashes(9)
  const body = (
    oldSize: number,
    newSize: number,
    { proof = consistencyProof(leaves.slice(0, newSize), oldSize), key = logKey, origin = LOG_ORIGIN } = {},
  ) => formatAddCheckpoint({ oldSize, proof, checkpoint: makeCheckpoint(leaves.slice(0, newSize), key, origin) })
  const at =
    (size: number, list = leaves) =>
    () => ({ size, root: rootOfLeafHashes(list.slice(0, size)) })
  const decide = (request: string, latest: () => { size: number; root: Uint8Array } | undefined) =>
    decideAddCheckpoint(request, { logs: [logVkey], latest })

  test('404 for a log it does not know, 403 without a signature of the log', () => {
    expect(decide(body(0, 3, { origin: 'other.example/log' }), () => undefined)).toEqual({
      status: 404,
      reason: "This witness does not know the log 'other.example/log'.",
    })
    expect(decide(body(0, 3, { key: untrustedKey }), () => undefined).status).toBe(403)
  })

  test('400 for a request whose checkpoint is none', () => {
    expect(decide('old 0\n\nnonsense', () => undefined)).toEqual({
      status: 400,
      reason: 'This is not an add-checkpoint request.',
    })
  })

  test('a line in its list of logs that is no verifier key is passed over', () => {
    const logs = ['nonsense', logVkey]
    expect(decideAddCheckpoint(body(0, 3), { logs, latest: () => undefined }).status).toBe(200)
  })

  test('400 when the old size is above the new one, before anything is compared', () => {
    expect(decide(body(3, 3).replace('old 3', 'old 4'), at(4))).toMatchObject({
      status: 400,
      reason: expect.stringContaining('old size is larger'),
    })
  })

  test('409 with its own size when the old size is another, also after it has forgotten everything', () => {
    expect(decide(body(3, 9), at(5))).toMatchObject({
      status: 409,
      size: 5,
      reason: expect.stringContaining('has 5 entries'),
    })
    expect(decide(body(3, 9), () => undefined)).toMatchObject({ status: 409, size: 0 })
  })

  test('409 and no cosignature for another root at the size it has', () => {
    expect(decide(body(5, 5), at(5, fillerHashes(9).reverse()))).toMatchObject({
      status: 409,
      isFork: true,
      reason: expect.stringContaining('another root'),
    })
  })

  test('422 for a proof that does not lead to the checkpoint, or one from the empty tree', () => {
    expect(decide(body(3, 9, { proof: consistencyProof(leaves, 4) }), at(3))).toMatchObject({
      status: 422,
      reason: expect.stringContaining('does not lead to this checkpoint'),
    })
    expect(decide(body(3, 9), at(3, fillerHashes(9).reverse())).status).toBe(422)
    expect(decide(body(0, 1, { proof: [leaves[0]!] }), () => undefined).status).toBe(422)
  })

  test('200 for every honest step, and for the same checkpoint again', () => {
    expect(decide(body(0, 0), () => undefined).status).toBe(200)
    expect(decide(body(0, 1), () => ({ size: 0, root: emptyRoot() })).status).toBe(200)
    for (let size = 1; size <= 9; size += 1)
      for (let next = size; next <= 9; next += 1) expect(decide(body(size, next), at(size)).status).toBe(200)
  })
})
