import type { TenantCaller } from '../../../platform/auth-context.ts'
import { hashJson } from '../../../platform/canonical.ts'
import { microFromUsdc, roundingHint } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import {
  isAddress,
  type Merchant,
  merchantNames,
  type PaymentFacts,
  readSpender,
  type Tags,
} from '../assess/payment-facts.ts'
import type { PreauthRow } from '../grants/grants.store.ts'
import { isOwnMerchant } from '../rules/payee-names.ts'

export type PreauthInput = {
  agent_id: string
  mandate_id?: string
  merchant: Merchant
  amount?: string
  amount_usdc?: number
  asset?: string
  network?: string
  purpose?: string
  request_hash?: string
  payer?: string
  spender?: string
  tags?: Tags
  override_token?: string
  ttl_seconds?: number
  idempotency_key?: string
}

/** The payment to pre-authorise, as read from the request and not assessed yet. */
export type PreauthTerms = {
  agentId: string
  spender: string
  team: string | null
  tags: Tags
  /** The mandate that the request names. */
  mandateId: string | null
  merchant: Merchant
  amountMicro: bigint
  asset: string
  network: string
  purpose: string | null
  requestHash: string | null
  /** The address that will pay, in lower case. */
  payer: string | null
  ttlSeconds: number
}

const MAX_TTL_SECONDS = 600

export function readTerms(
  tenant: TenantCaller,
  input: PreauthInput,
  service: { network: string; asset: string; payTo: string },
): PreauthTerms {
  const network = input.network ?? service.network
  return {
    agentId: input.agent_id,
    spender: readSpender(tenant, input.spender, input.agent_id)!,
    team: tenant.team,
    tags: input.tags ?? {},
    mandateId: input.mandate_id ?? null,
    merchant: readMerchant(input.merchant, network, service),
    amountMicro: readAmount('amount', input.amount, input.amount_usdc),
    asset: readAsset(input.asset, network, service),
    network,
    purpose: input.purpose ?? null,
    requestHash: input.request_hash ?? null,
    payer: readPayer(input.payer, network, service),
    ttlSeconds: input.ttl_seconds ?? MAX_TTL_SECONDS,
  }
}

/** Rules match a merchant by any of its names, so none of them may be the address of another merchant. */
function readMerchant(merchant: Merchant, network: string, service: { network: string; payTo: string }): Merchant {
  const { id, url, pay_to: payTo } = merchant
  if (url !== undefined && !URL.canParse(url)) throw invalid('body/merchant/url is not a URL.')
  if (network === service.network && payTo !== undefined && !isAddress(payTo))
    throw invalid('body/merchant/pay_to is not an EVM address.')
  const expectedPayTo = isOwnMerchant(id) ? service.payTo : isAddress(id) ? id : undefined
  if (expectedPayTo !== undefined && payTo !== undefined && payTo.toLowerCase() !== expectedPayTo.toLowerCase())
    throw invalid(`body/merchant/pay_to must be ${expectedPayTo}, the address of '${id}'.`)
  return isAddress(id) ? { ...merchant, pay_to: id } : merchant
}

function readPayer(payer: string | undefined, network: string, service: { network: string }): string | null {
  if (payer === undefined) return null
  if (network === service.network && !isAddress(payer)) throw invalid('body/payer is not an EVM address.')
  return isAddress(payer) ? payer.toLowerCase() : payer
}

/** `amount` is in atomic units and authoritative; `amount_usdc` is the same in USDC. If both are given they must agree. */
export function readAmount(name: string, atomic: string | undefined, usdc: number | undefined): bigint {
  const fromUsdc = usdc === undefined ? undefined : microFromUsdc(usdc)
  if (usdc !== undefined && fromUsdc === undefined)
    throw invalid(`body/${name}_usdc must be a positive amount with at most six decimals.${roundingHint(usdc)}`)
  const amount = atomic === undefined ? fromUsdc : BigInt(atomic)
  if (amount === undefined) throw invalid(`body must have ${name} or ${name}_usdc.`)
  if (fromUsdc !== undefined && fromUsdc !== amount) throw invalid(`body/${name} and body/${name}_usdc differ.`)
  if (amount <= 0n || amount > 1_000_000_000_000_000n)
    throw invalid(`body/${name} must be above zero and at most a billion USDC.`)
  return amount
}

/** Only USDC is accepted: by its contract on the service's network, by its name on other networks. */
function readAsset(asset: string | undefined, network: string, service: { network: string; asset: string }): string {
  const serviceAsset = network === service.network ? service.asset : 'USDC'
  if (asset === undefined || asset === 'USDC' || asset.toLowerCase() === serviceAsset.toLowerCase()) return serviceAsset
  throw invalid(`body/asset must be USDC${network === service.network ? ` (${service.asset})` : ''}, not '${asset}'.`)
}

export const preauthFacts = (
  terms: Pick<PreauthTerms, 'agentId' | 'spender' | 'team' | 'tags' | 'amountMicro' | 'merchant' | 'network'>,
  keyId: string,
  service: { payTo: string; isLane(agentId: string): boolean },
  at: Date,
): PaymentFacts => ({
  kind: 'preauth',
  action: 'pre-auth',
  agentId: terms.agentId,
  lane: preauthLane(terms, service),
  spender: terms.spender,
  team: terms.team,
  keyId,
  tags: terms.tags,
  amountMicro: terms.amountMicro,
  merchants: merchantNames(toPayee(terms.merchant, service.payTo)),
  payTo: toPayee(terms.merchant, service.payTo).pay_to ?? null,
  network: terms.network,
  sessionId: null,
  at,
  preauthorised: true,
})

/** The lane of the run that a pre-authorisation is for; null when it is for another merchant. */
export const preauthLane = (
  { agentId, merchant }: Pick<PreauthTerms, 'agentId' | 'merchant'>,
  { isLane }: { isLane(agentId: string): boolean },
): string | null => (isOwnMerchant(merchant.id) && isLane(agentId) ? agentId : null)

/** The address of this service is known without being named. */
export const toPayee = (merchant: Merchant, payTo: string): Merchant =>
  isOwnMerchant(merchant.id) ? { ...merchant, pay_to: payTo } : merchant

/** Two payments can have the same terms, so the id is part of the hash that is approved. */
export const preauthActionHash = (tenant: TenantCaller, id: string, terms: PreauthTerms): string =>
  hashJson({
    tenant_id: tenant.tenantId,
    kind: 'preauth',
    preauth_id: id,
    agent_id: terms.agentId,
    amount: terms.amountMicro.toString(),
    merchant: { ...terms.merchant },
    network: terms.network,
    asset: terms.asset,
    mandate_id: terms.mandateId,
    request_hash: terms.requestHash,
    purpose: terms.purpose,
    ...(terms.payer !== null && { payer: terms.payer }),
    ...(terms.spender !== terms.agentId && { spender: terms.spender }),
    ...(Object.keys(terms.tags).length > 0 && { tags: terms.tags }),
  })

/** Reads the terms from a stored row, to assess it again once it is approved. */
export const readStoredTerms = (row: PreauthRow): PreauthTerms => ({
  agentId: row.agent_id,
  // Rows from before there were spenders have none.
  spender: row.spender ?? row.agent_id,
  team: row.team,
  tags: (row.tags ?? {}) as Tags,
  mandateId: row.named_mandate_id,
  merchant: row.merchant as Merchant,
  amountMicro: row.amount_micro,
  asset: row.asset,
  network: row.network,
  purpose: row.purpose,
  requestHash: row.request_hash,
  payer: row.payer,
  ttlSeconds: row.ttl_seconds,
})

/** Who spends, in events and alerts about a pre-authorisation. */
export const spenderOf = ({ spender, agent_id, team, tags }: PreauthRow) => ({
  spender: spender ?? agent_id,
  team,
  tags: (tags ?? {}) as Tags,
})
