// Made by `npm run gen` from the migrations; not edited by hand.
import type { Generated } from 'kysely'

export type Alerts = {
  id: string
  tenant_id: string
  severity: string
  type: string
  message: string
  data: Generated<unknown>
  cause: string | null
  read_at: Date | null
  created_at: Date
  updated_at: Date
}

export type ApiKeys = {
  id: string
  tenant_id: string
  name: string
  prefix: string
  hash: string
  scopes: string[]
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
  replaced_by: string | null
}

export type ApprovalVotes = {
  approval_id: string
  key_id: string
  decision: string
  reason: string | null
  created_at: Date
}

export type Approvals = {
  id: string
  tenant_id: string
  kind: string
  status: string
  resolution: string | null
  action: string
  agent_id: string
  run_id: string
  preauth_id: string | null
  decision_id: string
  requested_by: string
  reason: string
  amount_micro: bigint
  merchant: string
  risk_summary: unknown
  action_hash: string
  approvals_required: number
  separate_approver: boolean
  expires_at: Date
  created_at: Date
  resolved_at: Date | null
  consumed_by: string | null
  consumed_at: Date | null
  lapsed_at: Date | null
}

export type AuditEvents = {
  id: string
  tenant_id: string
  type: string
  occurred_at: Date
  actor: string
  subject: string
  decision: string | null
  policy_ids: Generated<string[]>
  input_hash: string | null
  data: Generated<unknown>
}

export type AuditHeads = {
  tenant_id: string
  chain: string
  seq: bigint
  hash: string
  committed_seq: Generated<bigint>
  committed_at: Date | null
  receipt_id: string | null
  receipt_hash: string | null
}

export type AuditLinks = {
  tenant_id: string
  seq: bigint
  event_id: string
  prev_hash: string | null
  hash: string
}

export type AuditQueue = {
  event_id: string
}

export type BasisAssets = {
  asset: string
  reading: unknown
  reasons: unknown
  track: unknown
  attestation: unknown
  seq: bigint
  hash: string | null
  updated_at: Date
}

export type BasisBodies = {
  sha256: string
  body: Buffer
  stored_at: Date
}

export type BasisFetches = {
  id: Generated<bigint>
  source: string
  url: string
  status: number
  body_sha256: string
  fetched_at: Date
  published_at: Date | null
  block: bigint | null
  refused: string | null
}

export type BasisReadings = {
  asset: string
  seq: bigint
  as_of: Date
  wrapper_price: number
  reference_price: number
  basis_bps: number
  near_reference_usd: number
  underlying_state: string
  window_score: number
  window_status: string
  hash: string
  attestation: unknown
}

export type BasisTurn = {
  one: Generated<boolean>
  holder: string
  until: Date
}

export type Benchmarks = {
  id: string
  suite_version: string
  mode: string
  as_of: Date
  lanes: unknown
}

export type Budgets = {
  tenant_id: string
  budget_id: string
  scope: string
  scope_type: string
  scope_id: string
  window: string
  on_breach: string
  alert_thresholds: unknown
  version: number
  created_at: Date
  updated_at: Date
}

export type ChainAccounts = {
  address: string
  nonce: bigint
}

export type ChainAllowances = {
  owner: string
  spender: string
  amount: string
}

export type ChainAuthorizations = {
  authorizer: string
  nonce: string
  cancelled: boolean
  valid_before: string | null
  transaction: string
}

export type ChainBalances = {
  owner: string
  amount: string
}

export type ChainBlocks = {
  number: bigint
  hash: string
  time: bigint
  header: unknown
}

export type ChainHead = {
  id: number
  epoch: bigint
  reserved_block: Generated<bigint>
  block_time: Generated<bigint>
  supply: Generated<string>
}

export type ChainPermits = {
  owner: string
  count: string
}

export type ChainTransactions = {
  hash: string
  block_number: bigint
  index: number
  raw: string | null
  transaction: unknown
  receipt: unknown
}

export type Decisions = {
  id: string
  tenant_id: string
  kind: string
  run_id: string
  preauth_id: string | null
  agent_id: string
  merchant: string
  amount_micro: bigint
  outcome: string
  error: string
  message: string
  overridable: boolean
  results: unknown
  action_hash: string
  asked_by: string
  created_at: Date
}

export type EmbeddedChainOwner = {
  id: number
  url: string
}

export type Escrows = {
  id: string
  tenant_id: string
  wallet_id: string
  to_wallet_id: string | null
  to_tenant_id: string | null
  run_id: string | null
  amount_micro: bigint
  state: string
  memo: string | null
  reason: string | null
  expires_at: Date
  created_at: Date
  ended_at: Date | null
}

export type Events = {
  id: string
  tenant_id: string
  type: string
  data: unknown
  created_at: Date
  dispatched_at: Date | null
  only_for: string | null
}

export type FrozenAgents = {
  tenant_id: string
  agent_id: string
  reason: string
  frozen_by: string
  frozen_at: Date
}

export type GovernanceVersions = {
  tenant_id: string
  version: bigint
}

export type Holds = {
  holder: string
  scope: string
  period: string
  amount_micro: bigint
  on_success: string
  state: Generated<string>
  created_at: Date
  measure: Generated<string>
}

export type IdempotencyAnswers = {
  scope: string
  route: string
  key: string
  body_hash: string
  status: number
  answer: string
  expires_at: Date
}

export type LaneStats = {
  agent_id: string | null
  runs: bigint | null
  success_rate: number | null
  p50_ms: number | null
  p95_ms: number | null
}

export type LaneTrust = {
  agent_id: string | null
  receipts: bigint | null
  succeeded: bigint | null
  last_seen_at: Date | null
}

export type Lanes = {
  agent_id: string
  record: unknown
  updated_at: Date
}

export type LedgerBalances = {
  tenant_id: string
  account: string
  asset: string
  balance_micro: bigint
  entries: bigint
  last_transaction: string
  since_snapshot: bigint
}

export type LedgerEntries = {
  transaction_id: string
  line: number
  account: string
  layer: string
  asset: string
  amount_micro: bigint
  tenant_id: string | null
}

export type LedgerQueue = {
  transaction_id: string
}

export type LedgerSnapshots = {
  tenant_id: string
  account: string
  asset: string
  transaction_id: string
  balance_micro: bigint
}

export type LedgerTransactions = {
  id: string
  tenant_id: string | null
  kind: string
  pending_id: string | null
  code: string
  ref: string
  created_at: Date
}

export type LimitDefinitions = {
  scope: string
  tenant_id: string
  limit_micro: bigint
  soft_limit_micro: bigint | null
  enforced: boolean
  thresholds_micro: Generated<bigint[]>
  subject: unknown
}

export type Limits = {
  scope: string
  period: string
  limit_micro: bigint
  soft_limit_micro: bigint | null
  spent_micro: Generated<bigint>
  reserved_micro: Generated<bigint>
  alerted_micro: Generated<bigint>
}

export type LogCosignatures = {
  size: bigint
  witness: string
  line: string
  cosigned_at: Date
}

export type LogEntries = {
  log_index: bigint
  receipt_id: string
}

export type LogHead = {
  id: number
  origin: string
  size: bigint
  root: Buffer
  note: string
  updated_at: Date
}

export type LogQueue = {
  receipt_id: string
}

export type LogTiles = {
  level: number
  index: bigint
  bytes: Buffer
}

export type Mandates = {
  id: string
  tenant_id: string
  name: string
  agent_id: string | null
  holder_key_id: string | null
  constraints: unknown
  content_hash: string
  status: string
  starts_at: Date
  expires_at: Date
  created_by: string
  created_at: Date
  revoked_at: Date | null
}

export type Memories = {
  id: string
  tenant_id: string
  session_id: string
  agent_id: string | null
  run_id: string | null
  content: string
  metadata: Generated<unknown>
  created_at: Date
  expires_at: Date
  words: Generated<string>
}

export type Overrides = {
  id: string
  tenant_id: string
  hash: string
  agent_id: string
  amount_micro: bigint
  merchant: string
  reason: string
  decision_id: string
  issued_by: string
  created_at: Date
  expires_at: Date
  used_by: string | null
  used_at: Date | null
}

export type PaperAccounts = {
  venue: string
  account_id: string
  book: unknown
  active: boolean
  looked_at: Date
}

export type PaperJournal = {
  venue: string
  account_id: string
  tx: bigint
  line: number
  account: string
  asset: string
  amount: string
  code: string
  ref: string
  at: Date
}

export type PaperOrders = {
  venue: string
  client_order_id: string
  account_id: string
  status: string
  body: unknown
  placed_at: Date
}

export type Payouts = {
  id: string
  kind: string
  tenant_id: string | null
  wallet_id: string | null
  settlement_id: string | null
  to_address: string
  amount_micro: bigint
  method: string
  state: string
  pending_id: string
  transaction: string | null
  reason: string | null
  attempts: Generated<number>
  next_attempt_at: Date | null
  requested_by: string
  created_at: Date
  updated_at: Date
}

export type Policies = {
  id: string
  tenant_id: string
  name: string
  version: number
  status: string
  mode: string
  identity_type: string
  agent_id: string | null
  key_id: string | null
  key_prefix: string | null
  audit_trail_required: boolean
  constraints: unknown
  rules: unknown
  content_hash: string
  created_at: Date
  updated_at: Date
}

export type PolicyVersions = {
  policy_id: string
  version: number
  content: unknown
  content_hash: string
  changed_by: string
  created_at: Date
}

export type Preauths = {
  id: string
  tenant_id: string
  run_id: string
  status: string
  agent_id: string
  mandate_id: string | null
  merchant_id: string
  merchant: unknown
  amount_micro: bigint
  asset: string
  network: string
  purpose: string | null
  request_hash: string | null
  action_hash: string
  policy_hash: string | null
  policy_results: unknown
  decision_id: string | null
  override_id: string | null
  approval_id: string | null
  ttl_seconds: number
  asked_by: string
  created_at: Date
  issued_at: Date | null
  expires_at: Date | null
  close_by: Date | null
  locks: Generated<string[]>
  taken_by_run: Generated<boolean>
  reported_transaction: string | null
  escalated_at: Date | null
  closed_at: Date | null
  close_outcome: string | null
  charged_micro: bigint | null
  late: boolean | null
  transaction: string | null
  verified_onchain: boolean | null
  receipt_id: string | null
  decided_seq: bigint | null
  ended_seq: bigint | null
  outcome: Generated<string>
}

export type Receipts = {
  id: string
  run_id: string | null
  tenant_id: string | null
  kind: string
  agent_id: string | null
  payer: string | null
  issued_at: Date
  body: string
  hash: string
  prev_hash: string | null
}

export type RhFills = {
  run_id: string
  fill_id: string
  quantity_e8: bigint
  price_e8: bigint
  gross_micro: bigint
  fee_micro: bigint
  filled_at: Date
}

export type RhOauthAccounts = {
  rh_account_id: string
  tenant_id: string
  tokens: string
  metadata: Generated<unknown>
  created_at: Date
  updated_at: Date
}

export type RhOauthStates = {
  state_hash: string
  tenant_id: string
  code_verifier: string
  expires_at: Date
}

export type RhReceipts = {
  id: string
  run_id: string
  tenant_id: string
  instrument_type: string
  broker: string
  status: string
  body: unknown
  hash: string
  prev_hash: string | null
  created_at: Date
  superseded_at: Date | null
}

export type RhRunKeys = {
  tenant_id: string
  key: string
  body_hash: string
  run_id: string
  expires_at: Date
}

export type RhRuns = {
  id: string
  tenant_id: string
  key_id: string
  agent_id: string | null
  instrument_type: string
  symbol: string
  broker: string
  mode: string
  state: string
  reason: string | null
  client_order_id: string | null
  notional_micro: bigint
  terms: unknown
  instrument: unknown
  policy: unknown
  approval: unknown
  expires_at: Date | null
  execute_by: Date
  approved_at: Date | null
  approved_by: string | null
  approved_by_claimed: string | null
  lease_until: Date | null
  attempts: Generated<number>
  sent_at: Date | null
  next_attempt_at: Date | null
  broker_order_id: string | null
  stop_reason: string | null
  execution_quote: unknown
  answer_status: number | null
  answer_body: string | null
  created_at: Date
  updated_at: Date
  finished_at: Date | null
}

export type RhTenants = {
  tenant_id: string
  killed_at: Date | null
  killed_by: string | null
  kill_reason: string | null
}

export type RunHistory = {
  id: string | null
  tenant_id: string | null
  kind: string | null
  action: string | null
  outcome: string | null
  agent_id: string | null
  price_micro: bigint | null
  created_at: Date | null
  receipt_id: string | null
}

export type RunHours = {
  tenant_id: string
  hour: Date
  agent_id: string
  runs: bigint
  completed: bigint
  blocked: bigint
  failed: bigint
  spend_micro: bigint
  cost_micro: bigint
}

export type RunKeys = {
  scope: string
  route: string
  key: string
  body_hash: string
  run_id: string
  expires_at: Date
}

export type RunLatencies = {
  tenant_id: string
  day: string
  bucket: number
  runs: bigint
}

export type Runs = {
  id: string
  kind: string
  tenant_id: string | null
  payer: string | null
  agent_id: string
  session_id: string
  loop_id: string
  action: string
  state: string
  outcome: string
  request_hash: string
  request: unknown
  terms: unknown
  price_micro: bigint
  result: unknown
  answer_status: number | null
  answer_body: string | null
  instance: string | null
  admission: string | null
  created_at: Date
  deadline_at: Date
  finished_at: Date | null
  decided_seq: bigint | null
  ended_seq: bigint | null
}

export type SequencerLease = {
  id: number
  epoch: bigint
  holder: string
  expires_at: Date
}

export type Sessions = {
  id: string
  tenant_id: string
  key_id: string
  hash: string
  created_at: Date
  expires_at: Date
}

export type Settlements = {
  id: string
  run_id: string
  tenant_id: string | null
  method: string
  state: string
  network: string
  asset: string
  payer: string
  pay_to: string
  amount_micro: bigint
  nonce: string
  valid_before: bigint
  payment: unknown
  transaction: string | null
  shared_transaction: Generated<boolean>
  block: bigint | null
  reason: string | null
  attempts: Generated<number>
  next_attempt_at: Date | null
  created_at: Date
  updated_at: Date
  wallet_id: string | null
}

export type SigningKeys = {
  kid: string
  purpose: string
  jwk: unknown
  created_at: Date
  retired_at: Date | null
}

export type SpendHistory = {
  scope: string
  period: string
  samples: unknown
  updated_at: Date
}

export type Tenants = {
  id: string
  org_name: string
  email: string
  use_case: string | null
  plan: Generated<string>
  status: Generated<string>
  created_at: Date
  updated_at: Date
  billing_customer_id: string | null
}

export type Wallets = {
  id: string
  tenant_id: string
  name: string
  available_micro: Generated<bigint>
  reserved_micro: Generated<bigint>
  incoming_micro: Generated<bigint>
  escrowed_micro: Generated<bigint>
  created_at: Date
}

export type WebhookDeliveries = {
  id: string
  subscription_id: string
  tenant_id: string
  event_id: string
  seq: bigint
  state: Generated<string>
  attempts: Generated<number>
  round_attempts: Generated<number>
  next_attempt_at: Date | null
  claim: string | null
  last_status: number | null
  last_error: string | null
  last_ms: number | null
  last_attempt_at: Date | null
  history: Generated<unknown>
  created_at: Date
  delivered_at: Date | null
}

export type WebhookSubscriptions = {
  id: string
  tenant_id: string
  url: string
  events: string[]
  is_active: Generated<boolean>
  disabled_reason: string | null
  disabled_at: Date | null
  secret: string
  earlier_secret: string | null
  earlier_secret_until: Date | null
  last_seq: Generated<bigint>
  standing: Generated<string>
  failures: Generated<number>
  failing_since: Date | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

export type DB = {
  alerts: Alerts
  api_keys: ApiKeys
  approval_votes: ApprovalVotes
  approvals: Approvals
  audit_events: AuditEvents
  audit_heads: AuditHeads
  audit_links: AuditLinks
  audit_queue: AuditQueue
  basis_assets: BasisAssets
  basis_bodies: BasisBodies
  basis_fetches: BasisFetches
  basis_readings: BasisReadings
  basis_turn: BasisTurn
  benchmarks: Benchmarks
  budgets: Budgets
  chain_accounts: ChainAccounts
  chain_allowances: ChainAllowances
  chain_authorizations: ChainAuthorizations
  chain_balances: ChainBalances
  chain_blocks: ChainBlocks
  chain_head: ChainHead
  chain_permits: ChainPermits
  chain_transactions: ChainTransactions
  decisions: Decisions
  embedded_chain_owner: EmbeddedChainOwner
  escrows: Escrows
  events: Events
  frozen_agents: FrozenAgents
  governance_versions: GovernanceVersions
  holds: Holds
  idempotency_answers: IdempotencyAnswers
  lane_stats: LaneStats
  lane_trust: LaneTrust
  lanes: Lanes
  ledger_balances: LedgerBalances
  ledger_entries: LedgerEntries
  ledger_queue: LedgerQueue
  ledger_snapshots: LedgerSnapshots
  ledger_transactions: LedgerTransactions
  limit_definitions: LimitDefinitions
  limits: Limits
  log_cosignatures: LogCosignatures
  log_entries: LogEntries
  log_head: LogHead
  log_queue: LogQueue
  log_tiles: LogTiles
  mandates: Mandates
  memories: Memories
  overrides: Overrides
  paper_accounts: PaperAccounts
  paper_journal: PaperJournal
  paper_orders: PaperOrders
  payouts: Payouts
  policies: Policies
  policy_versions: PolicyVersions
  preauths: Preauths
  receipts: Receipts
  rh_fills: RhFills
  rh_oauth_accounts: RhOauthAccounts
  rh_oauth_states: RhOauthStates
  rh_receipts: RhReceipts
  rh_run_keys: RhRunKeys
  rh_runs: RhRuns
  rh_tenants: RhTenants
  run_history: RunHistory
  run_hours: RunHours
  run_keys: RunKeys
  run_latencies: RunLatencies
  runs: Runs
  sequencer_lease: SequencerLease
  sessions: Sessions
  settlements: Settlements
  signing_keys: SigningKeys
  spend_history: SpendHistory
  tenants: Tenants
  wallets: Wallets
  webhook_deliveries: WebhookDeliveries
  webhook_subscriptions: WebhookSubscriptions
}
