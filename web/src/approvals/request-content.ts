export type RequestContent = {
  /** The task or input, apart from the fields, so that its text cannot pass for one of them. */
  text: { name: string; value: string } | null
  facts: [name: string, value: string][]
  /** Everything else, as JSON; null when there is nothing else. */
  rest: string | null
}

const texts = [
  ['task', 'Task'],
  ['intent', 'Task'],
  ['input', 'Input'],
] as const

/** The parts of a request that a person reads first. */
export function splitRequest(request: Record<string, unknown> | null | undefined): RequestContent {
  if (!request) return { text: null, facts: [], rest: null }
  const [field, name] = texts.find(([key]) => typeof request[key] === 'string') ?? []
  const { merchant, purpose, ...others } = Object.fromEntries(
    Object.entries(request).filter(([key]) => key !== field),
  ) as { merchant?: { url?: unknown; pay_to?: unknown }; purpose?: unknown }
  const fact = (label: string, value: unknown): [string, string][] =>
    typeof value === 'string' && value !== '' ? [[label, value]] : []
  const rest = { ...(merchant !== undefined && { merchant }), ...others }
  return {
    text: field && name ? { name, value: request[field] as string } : null,
    facts: [...fact('Purpose', purpose), ...fact('Resource', merchant?.url), ...fact('Pays to', merchant?.pay_to)],
    rest: Object.keys(rest).length === 0 ? null : JSON.stringify(rest, null, 2),
  }
}
