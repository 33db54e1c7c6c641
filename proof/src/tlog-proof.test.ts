import { describe, expect, test } from 'vitest'
import {
  fillerHashes,
  jwks,
  LOG_ORIGIN,
  logKey,
  logReceipt,
  makeCheckpoint,
  makeReceipt,
  testKey,
  untrustedKey,
} from '../test/fixtures.ts'
import { cosign, witnessVkey } from '../test/witnesses.ts'
import {
  formatReceiptProof,
  formatTlogProof,
  formatVerifierKey,
  hashLeaf,
  inclusionProof,
  type LogPolicy,
  NOTE_ED25519,
  parseLogPolicy,
  parseTlogProof,
  type ReceiptLog,
  toBase64,
  utf8,
  verifyReceiptProof,
  verifyTlogProof,
} from './proof.ts'

const logVkey = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })
const witness = testKey(30)
const parsed = parseLogPolicy(`log ${logVkey}\nwitness w ${witnessVkey('witness.example/w', witness)}\nquorum w\n`)
const policy = (parsed as { policy: LogPolicy }).policy
const AT = 1_794_000_000

const receipt = logReceipt(makeReceipt())
const log = receipt.log as ReceiptLog
const checkpoint = log.checkpoint + cosign(log.checkpoint, 'witness.example/w', witness, AT)
const file = formatReceiptProof(receipt, { ...log, checkpoint })
const failures = (text: string, options = {}) =>
  verifyReceiptProof(text, { policy, ...options })
    .checks.filter(({ ok }) => ok === false)
    .map(({ name }) => name)

test('the example of C2SP tlog-proof is read up to its shortened signatures, and written line for line', () => {
  const lines = `c2sp.org/tlog-proof@v1
extra YWdlLXYxLjIuMS1kYXJ3aW4tYXJtNjQudGFyLmd6
index 73894
gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=
B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=
EKNzoDWG8LGC0Yp9o+sv3qllpMP9uHQ9B20KNL+Q1zs=
RoopEkOdqkYqMB4MJXrbt/hMjOxsVn0IrWjpz1ZMMes=
AHCioX9nLjsrse6YhjRRmk1WUEirVOLLRoOQ6vfO5vk=
`
  const text = `${lines}\nexample.com/fancylog\n109482\nsFodV/vSp5O8n9a8QpW6PRY97tfOSW5bsc2Xl/EQi08=\n\n— example.com/fancylog hI2DJwAAAAAA\n`
  const proof = parseTlogProof(text)!
  expect([proof.index, proof.proof.length, new TextDecoder().decode(proof.extra)]).toEqual([
    73894,
    5,
    'age-v1.2.1-darwin-arm64.tar.gz',
  ])
  expect(formatTlogProof(proof)).toBe(text)
})

describe('a file with a receipt in it', () => {
  test('verifies against the policy alone and gives the receipt back', () => {
    const { ok, receipt: verified, checks } = verifyReceiptProof(file, { policy })
    expect([ok, verified]).toEqual([true, { ...receipt, log: null }])
    expect(checks.find(({ name }) => name === 'signature')?.ok).toBe('skipped')
    expect(verifyReceiptProof(file, { policy, jwks, receipt }).ok).toBe(true)
  })

  test('is refused without the quorum, and with cosignatures that are too old', () => {
    expect(failures(formatReceiptProof(receipt, log))).toEqual(['quorum'])
    const now = new Date((AT + 61) * 1000)
    expect(failures(file, { now, maxAgeSeconds: 60 })).toEqual(['quorum'])
  })

  test('is refused when anything of the receipt was changed', () => {
    const changed = { ...receipt, run_id: 'run_02' }
    expect(failures(formatReceiptProof(changed, { ...log, checkpoint }))).toEqual(['inclusion'])
    expect(failures(formatReceiptProof(changed, { ...log, checkpoint }), { jwks })).toEqual(['inclusion', 'signature'])
    expect(failures(file, { receipt: changed })).toEqual(['receipt'])
  })

  test('is refused at another index, with another log, or under an untrusted key', () => {
    expect(failures(file.replace('index 5', 'index 6'))).toEqual(['inclusion'])
    const forged = logReceipt(makeReceipt(), { key: untrustedKey })
    expect(failures(formatReceiptProof(forged, forged.log as ReceiptLog))).toEqual(['checkpoint'])
  })

  test('is refused when the entry is not the canonical form of a receipt', () => {
    const entry = utf8(JSON.stringify({ ...receipt, log: undefined }, null, 1))
    const leaves = fillerHashes(3)
    leaves[1] = hashLeaf(entry)
    const note = makeCheckpoint(leaves)
    const cosigned = note + cosign(note, 'witness.example/w', witness, AT)
    const text = formatTlogProof({ extra: entry, index: 1, proof: inclusionProof(leaves, 1), checkpoint: cosigned })
    expect(verifyTlogProof(text, { policy, entry }).ok).toBe(true)
    expect(failures(text)).toEqual(['shape'])
    expect(failures(formatTlogProof({ index: 1, proof: [], checkpoint: cosigned }))).toEqual(['shape'])
  })
})

test.each([
  ['another version', file.replace('@v1', '@v2')],
  ['no index', file.replace('index 5\n', '')],
  ['an index with a leading zero', file.replace('index 5', 'index 05')],
  ['extra after the index', file.replace(/(extra .*\n)(index 5\n)/, '$2$1')],
  ['a hash that is short', file.replace(/(index 5\n)/, '$1AAAA\n')],
  ['65 hashes', file.replace(/(index 5\n)/, `$1${`${toBase64(new Uint8Array(32))}\n`.repeat(65)}`)],
  ['no checkpoint', file.slice(0, file.indexOf('\n\n') + 2)],
  ['a carriage return', file.replaceAll('\n', '\r\n')],
  ['something before it', `\n${file}`],
  ['no text', 7],
])('a file with %s is malformed', (_, text) => {
  expect(parseTlogProof(text)).toBeUndefined()
  expect(verifyReceiptProof(text, { policy })).toMatchObject({ ok: false })
  expect(verifyTlogProof(text, { policy, entry: utf8('x') }).ok).toBe(false)
})

describe('the shape of a file', () => {
  const [head, note] = [file.slice(0, file.indexOf('\n\n')), file.slice(file.indexOf('\n\n'))]
  const hash = toBase64(new Uint8Array(32))
  test.each([
    ['no blank line', head],
    ['nothing after its header', `c2sp.org/tlog-proof@v1${note}`],
    ['a word before the index', file.replace('\nindex', '\nxindex')],
    ['an extra line that is not base64', file.replace('\nextra ', '\nextra !')],
    ['more hashes than a tree has levels', `${head}${`\n${hash}`.repeat(65)}${note}`],
    ['a hash that is short', `${head}\nAAAA${note}`],
  ])('with %s is not one', (_, text) => {
    expect(parseTlogProof(text)).toBeUndefined()
  })

  test('may have 64 hashes, and is not written from values that do not form one', () => {
    const proof = Array.from({ length: 64 }, () => hash)
    expect(parseTlogProof(formatTlogProof({ index: 0, proof, checkpoint }))?.proof).toHaveLength(64)
    expect(() => formatTlogProof({ extra: new Uint8Array(400_000), index: 0, proof, checkpoint })).toThrow(
      'do not form',
    )
    expect(() => formatTlogProof({ index: -1, proof: [], checkpoint })).toThrow('do not form')
    expect(() => formatTlogProof({ index: 0, proof: ['AAAA'], checkpoint })).toThrow('do not form')
    expect(() => formatTlogProof({ index: 0, proof: [], checkpoint: 'x' })).toThrow('do not form')
  })
})

describe('what the check of a file says', () => {
  const outcomes = (result: { checks: { name: string; ok: unknown }[] }) =>
    result.checks.map(({ name, ok }) => `${name} ${ok}`)

  test('another entry than that of the proof fails, although everything else passes', () => {
    const result = verifyTlogProof(file, { policy, entry: utf8('another') })
    expect([result.ok, outcomes(result)]).toEqual([
      false,
      ['shape true', 'checkpoint true', 'quorum true', 'inclusion false'],
    ])
    expect(verifyTlogProof('x', { policy, entry: utf8('x') }).checks).toEqual([
      { name: 'shape', ok: false, reason: 'This is not a tlog-proof.' },
    ])
  })

  test('a receipt is given back only when nothing failed', () => {
    const unwitnessed = verifyReceiptProof(formatReceiptProof(receipt, log), { policy })
    expect([unwitnessed.ok, unwitnessed.receipt]).toEqual([false, undefined])
    for (const other of [makeReceipt({ run_id: 'run_02' }), 'text', null, { a: Number.NaN }]) {
      const result = verifyReceiptProof(file, { policy, receipt: other })
      expect([result.ok, result.receipt, result.checks.at(-1)]).toEqual([
        false,
        undefined,
        { name: 'receipt', ok: false, reason: 'The file is about another receipt.' },
      ])
    }
  })

  test.each<[string, Uint8Array | undefined, string]>([
    ['no extra line', undefined, 'does not have the receipt in its extra line'],
    ['an extra line that is no JSON', utf8('{'), 'does not hold JSON'],
    ['an extra line that is no text', new Uint8Array([0xff]), 'does not hold JSON'],
    ['an extra line that is another object', utf8('{"a":1}'), "holds no receipt: The schema is not 'run-receipt/v1'."],
    ['an extra line that is a list', utf8('[]'), 'holds no receipt: A receipt is a JSON object.'],
  ])('with %s', (_, extra, reason) => {
    const text = formatTlogProof({ ...(extra && { extra }), index: 0, proof: [], checkpoint })
    expect(verifyReceiptProof(text, { policy }).checks).toEqual([
      { name: 'shape', ok: false, reason: expect.stringContaining(reason) },
    ])
  })

  test('a key for another purpose is not one for receipts', () => {
    const keySet = (purpose: string) => ({ keys: [testKey(1, purpose).jwk] })
    expect(verifyReceiptProof(file, { policy, jwks: keySet('receipt') }).ok).toBe(true)
    expect(failures(file, { jwks: keySet('attestation') })).toEqual(['key_purpose'])
  })

  test('the quorum says who cosigned, or that nobody has to', () => {
    const quorumOf = (options: { policy: LogPolicy }) =>
      verifyReceiptProof(file, options).checks.find(({ name }) => name === 'quorum')?.reason
    expect(quorumOf({ policy })).toContain("Cosigned by w; the quorum 'w' is met.")
    const none = parseLogPolicy(`log ${logVkey}\nquorum none\n`) as { policy: LogPolicy }
    expect(quorumOf(none)).toBe('The policy asks for no witness.')
  })
})
