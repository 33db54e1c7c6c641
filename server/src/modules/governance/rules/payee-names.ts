import { isAddress, OWN_MERCHANT, type PaymentFacts } from '../assess/payment-facts.ts'

/** The kinds of names that a payee has. A list speaks of the kinds of its entries. */
type NameKind = 'id' | 'host' | 'address'

type PayeeName = {
  /** As the request sends it. */
  text: string
  kind: NameKind
  /** What a list can call it: a host with a port also without the port. */
  forms: readonly string[]
}

const SCHEME = /^(?:(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]*:[/\\]{2,}|[/\\]{2,})/
/** Base58 with capitals, small letters and digits, as the addresses of networks that are not EVM. */
const BASE58_ADDRESS = /^(?=.{32,44}$)(?=.*[1-9])(?=.*[A-Z])(?=.*[a-z])[1-9A-HJ-NP-Za-km-z]+$/

/** Full-width letters and the ideographic full stop are other ways to write the plain ones. */
const toPlainText = (name: string) => name.normalize('NFKC').replaceAll('\u3002', '.').trim()

/** The host of a name that is a URL or has a dot, with its port if it has one; undefined for any other name. */
function readHost(plain: string): string | undefined {
  const text = plain.toLowerCase()
  const address = text.replace(SCHEME, '')
  const isUrl = address !== text
  // An e-mail address is a name of its own, not another way to write its host.
  if (!isUrl && (!/[.%]/.test(text) || (text.includes('@') && !/[/\\]/.test(text)))) return undefined
  if (!URL.canParse(`https://${address}`)) return undefined
  const { hostname, port } = new URL(`https://${address}`)
  const host = hostname.replace(/\.+$/, '')
  if (host === '' || !(isUrl || hostname.includes('.'))) return undefined
  return port === '' ? host : `${host}:${port}`
}

/**
 * The form in which lists, rules, mandates and budgets compare the name of a merchant. A URL, and a name with a dot, is reduced
 * to its host and port, as the host of `merchant.url` is. Everything is compared without regard to case.
 */
export function normalizePayee(name: string): string {
  const plain = toPlainText(name)
  return readHost(plain) ?? plain.toLowerCase().replace(/[./]+$/, '')
}

const withoutPort = (name: string) => name.replace(/:\d+$/, '')

function payeeForms(name: string): string[] {
  const normalized = normalizePayee(name)
  const host = withoutPort(normalized)
  return host !== normalized && isHost(normalized) ? [host, normalized] : [normalized]
}

const isHost = (normalized: string) => normalized.includes('.') || normalized.startsWith('[')

function payeeKind(name: string): NameKind {
  const plain = toPlainText(name)
  if (isAddress(plain.toLowerCase()) || BASE58_ADDRESS.test(plain)) return 'address'
  return readHost(plain) !== undefined && isHost(normalizePayee(plain)) ? 'host' : 'id'
}

export const isHostName = (name: unknown): boolean => typeof name === 'string' && payeeKind(name) === 'host'
export const isOwnMerchant = (id: string): boolean => normalizePayee(id) === OWN_MERCHANT

/** Every rule compares the same payment, so its names are read once. */
const readPayments = new WeakMap<readonly string[], PayeeName[]>()

/** The first name is the id; the address that is paid is one, and the others are hosts of its URL. */
function payeeNames({ merchants, payTo }: Payee): PayeeName[] {
  const existing = readPayments.get(merchants)
  if (existing) return existing
  const names = merchants.map((text, index): PayeeName => {
    const isPaid = payTo !== undefined && payTo !== null && text.toLowerCase() === payTo.toLowerCase()
    const kind = isPaid ? 'address' : index === 0 ? payeeKind(text) : 'host'
    return { text, kind, forms: payeeForms(text) }
  })
  readPayments.set(merchants, names)
  return names
}

export type Payee = Pick<PaymentFacts, 'kind' | 'merchants' | 'payTo'>

/** A list can also have names for people, which are compared and say nothing of its kinds. */
export type PayeeList = readonly string[] & { names?: readonly string[] }

/** The entries of a list as they are compared, each with the entry as it is written. */
type CompiledList = { entries: ReadonlyMap<string, string>; kinds: ReadonlySet<NameKind> }
const compiledLists = new WeakMap<readonly unknown[], CompiledList>()

function compileList(list: PayeeList): CompiledList {
  const existing = compiledLists.get(list)
  if (existing) return existing
  const compiled = {
    entries: new Map([...(list.names ?? []), ...list].map((entry) => [normalizePayee(entry), entry])),
    kinds: new Set(list.map(payeeKind)),
  }
  compiledLists.set(list, compiled)
  return compiled
}

/** The first name of the payee that the list has, and the entry that it is. */
export function findPayee(list: PayeeList, payee: Payee): { name: string; entry: string } | undefined {
  const { entries } = compileList(list)
  for (const { text, forms } of payeeNames(payee)) {
    const form = forms.find((candidate) => entries.has(candidate))
    if (form !== undefined) return { name: text, entry: entries.get(form)! }
  }
  return undefined
}

/**
 * The names that a list which allows would have to get for the payment to pass; none when it allows the payment. The list must have
 * every name that the request gives, of each kind that the list speaks of, and at least one. Names that this service
 * itself knows to be one payee (of its runs, of `countersign`, of the merchant of a trade) need one of them in the list.
 */
export function unlistedNames(list: PayeeList, payee: Payee): string[] {
  const { entries, kinds } = compileList(list)
  const isListed = ({ forms }: PayeeName) => forms.some((form) => entries.has(form))
  const names = payeeNames(payee)
  const isFromRequest = payee.kind === 'preauth' || payee.kind === 'action'
  const isOwn = names[0] !== undefined && isOwnMerchant(names[0].text)
  const isServiceName = (name: PayeeName) => !isFromRequest || (isOwn && (name === names[0] || name.kind === 'address'))
  const serviceNames = names.filter(isServiceName)
  const requestNames = names.filter((name) => !isServiceName(name))
  const unlisted = requestNames.filter((name) => kinds.has(name.kind) && !isListed(name))
  if (serviceNames.length > 0 && !serviceNames.some(isListed)) unlisted.unshift(serviceNames[0]!)
  if (unlisted.length === 0 && !names.some(isListed))
    unlisted.push(...requestNames.filter(({ kind }) => kind === names[0]?.kind))
  return [...new Map(unlisted.map((name) => [name.forms[0], name.text])).values()]
}
