/** The script that the browser test bundles for the page: the published package and a loop over the vectors. */
import {
  type Check,
  canonicalize,
  decideAddCheckpoint,
  fromHex,
  type Jwk,
  memoryCheckpoints,
  parseLogPolicy,
  rememberCheckpoint,
  verifyEd25519,
  verifyLogEvidence,
  verifyReceipt,
  verifyReceiptProof,
} from '../src/proof.ts'

export type PageInput = {
  jcs: { name: string; input: string; output: string }[]
  ed25519: { id: number; jwk: Jwk; msg: string; sig: string; valid: boolean }[]
  receipt: unknown
  tampered: unknown
  jwks: { keys: Jwk[] }
}

export type PageResult = {
  jcsAgree: number
  ed25519Agree: number
  receipt: ReturnType<typeof verifyReceipt>
  tampered: ReturnType<typeof verifyReceipt>
}

export function runVectors({ jcs, ed25519, receipt, tampered, jwks }: PageInput): PageResult {
  return {
    jcsAgree: jcs.filter(({ input, output }) => canonicalize(JSON.parse(input)) === output).length,
    ed25519Agree: ed25519.filter(({ jwk, msg, sig, valid }) => verifyEd25519(jwk, fromHex(msg), fromHex(sig)) === valid)
      .length,
    receipt: verifyReceipt(receipt, { jwks, log: { required: true } }),
    tampered: verifyReceipt(tampered, { jwks, log: { required: true } }),
  }
}

/** What a page does with a log: a proof file, a policy, a request to a witness, evidence, and two checkpoints of its own memory. */
export type LogInput = {
  policy: string
  proofFile: string
  request: string
  logKey: string
  evidence: unknown
  checkpoints: [string, string]
  origin: string
  now: string
}

export type LogResult = {
  proof: boolean
  withoutQuorum: boolean
  witnessStatus: number
  evidence: boolean
  memory: Check['ok'][]
}

export async function runLog({
  policy,
  proofFile,
  request,
  logKey,
  evidence,
  checkpoints,
  origin,
  now,
}: LogInput): Promise<LogResult> {
  const parsed = parseLogPolicy(policy)
  if (!parsed.ok) throw new Error(parsed.reason)
  const time = new Date(now)
  const store = memoryCheckpoints()
  const memory: Check['ok'][] = []
  for (const note of checkpoints)
    memory.push((await rememberCheckpoint(note, { store, origin, keys: [logKey], now: time })).check.ok)
  const unsigned = `${proofFile.trimEnd().split('\n').slice(0, -1).join('\n')}\n`
  return {
    proof: verifyReceiptProof(proofFile, { policy: parsed.policy, now: time }).ok,
    withoutQuorum: verifyReceiptProof(unsigned, { policy: parsed.policy, now: time }).ok,
    witnessStatus: decideAddCheckpoint(request, { logs: [logKey], latest: () => undefined }).status,
    evidence: verifyLogEvidence(evidence, { policy: parsed.policy }).ok,
    memory,
  }
}
