/** The only entry point of the package. Everything here is pure and runs the same in a browser and in Node. */

export type { AddCheckpoint, WitnessDecision, WitnessedTree } from './add-checkpoint.ts'
export {
  decideAddCheckpoint,
  formatAddCheckpoint,
  MAX_ADD_CHECKPOINT_LENGTH,
  parseAddCheckpoint,
  parseTreeSize,
  TLOG_SIZE_TYPE,
} from './add-checkpoint.ts'
export type { AttestationContent, AttestationEvidence, EvidenceSource } from './attestation.ts'
export {
  ATTESTATION_SCHEMA,
  attestationId,
  attestationLeaf,
  attestationSigningBytes,
  evidenceHash,
} from './attestation.ts'
export { CanonicalizeError, canonicalize } from './canonicalize.ts'
export type { Checkpoint, CheckpointKey, VerifiedCheckpoint } from './checkpoint.ts'
export { checkpointSignatureLine, checkpointText, parseCheckpoint, verifyCheckpoint } from './checkpoint.ts'
export type { CheckpointMemoryOptions, CheckpointStore, RememberedCheck } from './checkpoint-memory.ts'
export { memoryCheckpoints, rememberCheckpoint } from './checkpoint-memory.ts'
export type { Check, Verification } from './checks.ts'
export type { ConsistencyClaim } from './consistency.ts'
export { consistencyProof, verifyConsistency } from './consistency.ts'
export type { Cosignature, VerifiedCosignatures, WitnessKey } from './cosignature.ts'
export { cosignatureLine, cosignatureMessage, verifyCosignatures } from './cosignature.ts'
export type { CountedBy, CountersCommitment, CountersOpening, DisclosedCounter, OpenedCounters } from './counters.ts'
export { COUNTERS_ALG, hashCounter, hashCounters, openCounters } from './counters.ts'
export { verifyEd25519 } from './ed25519.ts'
export { fromBase64, fromBase64Url, fromHex, toBase64, toBase64Url, toHex, utf8 } from './encoding.ts'
export { decodeEntryBundle, encodeEntryBundle } from './entry-bundle.ts'
export { hashJson, isHashText } from './hash-json.ts'
export type { InclusionClaim } from './inclusion.ts'
export { inclusionProof, verifyInclusion } from './inclusion.ts'
export type { Jwk, Jwks, KeyPurpose } from './jwk.ts'
export { findKey, jwkFromPublicKey, publicKeyBytes, thumbprint } from './jwk.ts'
export type { LogEvidence, VerifyLogEvidenceOptions } from './log-evidence.ts'
export { LOG_EVIDENCE_SCHEMA, verifyLogEvidence } from './log-evidence.ts'
export type { LogPolicy, ParsedLogPolicy, PolicyOptions, PolicyVerification } from './log-policy.ts'
export { meetsQuorum, NO_QUORUM, parseLogPolicy, verifyLogPolicy } from './log-policy.ts'
export type { HashInput } from './merkle-tree.ts'
export { emptyRoot, hashLeaf, hashNode, rootOfLeafHashes, rootOfLeaves } from './merkle-tree.ts'
export type { Note, NoteKey, NoteSignature } from './note.ts'
export {
  formatNote,
  formatVerifierKey,
  NOTE_COSIGNATURE_V1,
  NOTE_ED25519,
  noteKeyId,
  noteSignatureLine,
  parseNote,
  parseVerifierKey,
} from './note.ts'
export { parseJson } from './parse-json.ts'
export { ProofError } from './proof-error.ts'
export type { Commitment, CommittedHash, Receipt, ReceiptLog, ReceiptSignature } from './receipt.ts'
export { COMMITMENT_ALG, hashReceipt, RECEIPT_SCHEMA, receiptLeaf, receiptSigningBytes } from './receipt.ts'
export { sha256 } from './sha256.ts'
export type { EntryTile, Tile } from './tile.ts'
export { parseTilePath, TILE_WIDTH, tileInTree, tilePath, tilesOfTree } from './tile.ts'
export type { AppendedTiles } from './tile-append.ts'
export { appendToTiles } from './tile-append.ts'
export type { TileReader } from './tile-proof.ts'
export {
  consistencyProofFromTiles,
  inclusionProofFromTiles,
  rootFromTiles,
  tilesForConsistency,
  tilesForInclusion,
  tilesForRoot,
} from './tile-proof.ts'
export type { ReceiptProofVerification, TlogProof, VerifyReceiptProofOptions } from './tlog-proof.ts'
export {
  formatReceiptProof,
  formatTlogProof,
  parseTlogProof,
  verifyReceiptProof,
  verifyTlogProof,
} from './tlog-proof.ts'
export type { TreeEdge } from './tree-edge.ts'
export { appendToEdge, EMPTY_EDGE, isTreeEdge, rootOfEdge } from './tree-edge.ts'
export type { VerifyAttestationOptions } from './verify-attestation.ts'
export { verifyAttestation } from './verify-attestation.ts'
export type { AuditHead, AuditVerification, VerifyAuditOptions } from './verify-audit-export.ts'
export { hashAuditEvent, verifyAuditExport } from './verify-audit-export.ts'
export type { Opening } from './verify-opening.ts'
export { saltHash, verifyOpening } from './verify-opening.ts'
export type { PreauthClaims, PreauthVerification, VerifyPreauthTokenOptions } from './verify-preauth-token.ts'
export { verifyPreauthToken } from './verify-preauth-token.ts'
export type { LogRequirements, VerifyReceiptOptions } from './verify-receipt.ts'
export { verifyReceipt } from './verify-receipt.ts'
export { verifyReceiptChain } from './verify-receipt-chain.ts'
export type { VerifyStatementOptions } from './verify-statement.ts'
export { statementSigningBytes, verifyStatement } from './verify-statement.ts'
