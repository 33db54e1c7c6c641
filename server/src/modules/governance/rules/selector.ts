import { invalid } from '../../../platform/problem.ts'
import { agentNames, isAddress, type PaymentFacts, TAG_NAME } from '../assess/payment-facts.ts'
import { findPayee, isHostName } from './payee-names.ts'

/** Which payments a budget or a policy is for. */
export type Selector =
  | { type: 'tenant' }
  | { type: 'agent' | 'spender' | 'team' | 'tag' | 'merchant' | 'session' | 'mandate'; id: string }
  /** The key and its rotated successors. */
  | { type: 'key'; keyIds: ReadonlySet<string> }

export type MissingField = { missing: string }

/** Whether the payment is selected; the missing field when the payment leaves out what would tell. */
export function selects(selector: Selector, facts: PaymentFacts): boolean | MissingField {
  switch (selector.type) {
    case 'tenant':
      return true
    case 'agent':
      return missingAgent(facts) ?? agentNames(facts).includes(selector.id)
    case 'spender':
      return facts.spender === null ? { missing: 'spender' } : facts.spender === selector.id
    case 'team':
      return facts.team === null ? { missing: 'team' } : facts.team === selector.id
    case 'tag': {
      const [name, value] = readTag(selector.id)
      return missingTag(name, facts) ?? facts.tags[name] === value
    }
    case 'merchant':
      return missingPayee([selector.id], facts) ?? findPayee(merchantList(selector), facts) !== undefined
    case 'session':
      return missingSession(facts) ?? facts.sessionId === selector.id
    case 'mandate':
      return facts.mandateId === selector.id
    case 'key':
      return facts.keyId !== null && selector.keyIds.has(facts.keyId)
  }
}

/** A selector is cached with its rule; its list is compiled once. */
const merchantLists = new WeakMap<Selector, string[]>()

function merchantList(selector: Selector & { id: string }): string[] {
  const list = merchantLists.get(selector) ?? [selector.id]
  merchantLists.set(selector, list)
  return list
}

/** Splits `name=value`; the value may contain further equal signs. */
export const readTag = (text: string): [string, string] => {
  const at = text.indexOf('=')
  return [text.slice(0, at), text.slice(at + 1)]
}

const TAG = new RegExp(`^${TAG_NAME}=.{1,200}$`, 's')

/** Refuses what is not `name=value`, as a request can send it. */
export function requireTag(path: string, text: string): void {
  if (!TAG.test(text))
    throw invalid(`${path} must be a tag as "name=value"; the name has letters, digits, dots, dashes and underscores.`)
}

export const missingAgent = (facts: PaymentFacts): MissingField | undefined =>
  agentNames(facts).length === 0 ? { missing: 'agent_id' } : undefined

export const missingTag = (name: string, { tags }: PaymentFacts): MissingField | undefined =>
  Object.hasOwn(tags, name) ? undefined : { missing: `tags.${name}` }

/** Only runs and loops have sessions. */
export const missingSession = ({ kind, sessionId }: PaymentFacts): MissingField | undefined =>
  (kind === 'run' || kind === 'loop') && sessionId === null ? { missing: 'session_id' } : undefined

/** A rule that names an address needs the address that is paid. Only a pre-authorisation can leave it out. */
export const missingPayTo = (names: readonly unknown[], { kind, payTo }: PaymentFacts): MissingField | undefined =>
  kind === 'preauth' && payTo === null && names.some((name) => typeof name === 'string' && isAddress(name))
    ? { missing: 'merchant.pay_to' }
    : undefined

/** A denial that names a host needs the merchant's URL or address, unless the merchant's id is a host name. */
export const missingPayee = (names: readonly unknown[], facts: PaymentFacts): MissingField | undefined =>
  missingPayTo(names, facts) ??
  (facts.kind === 'preauth' && facts.payTo === null && names.some(isHostName) && !facts.merchants.some(isHostName)
    ? { missing: 'merchant.url' }
    : undefined)
