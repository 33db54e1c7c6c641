import { LoopRequest, RunRequest } from './runs.schema.ts'

/**
 * The x402 extension `bazaar`: how a paid call is made, for indexes that list paid services. It stands in the header of every
 * 402, which has to stay small, so it shows the fields that a newcomer sends and their types; the whole schema is in the body
 * of a probe's 402 and in `/openapi.json`.
 */
export const INPUT_EXTENSION = 'bazaar'

type ObjectSchema = { properties: Record<string, FieldSchema>; required?: readonly string[] }
type FieldSchema = { type?: string }

/** Kinds of call that anybody can pay for by x402, with an example of a body that each accepts. */
export const paidInputs = {
  run: { schema: RunRequest as ObjectSchema, main: 'task', example: { task: 'Tell me a joke.' } },
  loop: { schema: LoopRequest as ObjectSchema, main: 'input', example: { input: 'Tell me a joke.' } },
} as const

const shownFields = ['agent_id', 'session_id', 'constraints', 'budget', 'policy']

export type PaidInput = keyof typeof paidInputs

export const hasPaidInput = (kind: string): kind is PaidInput => Object.hasOwn(paidInputs, kind)

/** The `extensions` member of a PaymentRequired. */
export const inputExtension = (kind: PaidInput) => extensions[kind]

/** Version 1 describes the call in `outputSchema` of its payment requirements. */
export const inputDescriptionV1 = (kind: PaidInput) => ({
  input: {
    type: 'http',
    method: 'POST',
    discoverable: true,
    bodyType: 'json',
    bodyFields: summarize(kind).properties,
  },
})

const extensions = { run: buildExtension('run'), loop: buildExtension('loop') }

function buildExtension(kind: PaidInput) {
  const { example } = paidInputs[kind]
  return {
    [INPUT_EXTENSION]: {
      info: { input: { type: 'http', method: 'POST', bodyType: 'json', body: example } },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          input: {
            type: 'object',
            properties: {
              type: { const: 'http' },
              method: { enum: ['POST'] },
              bodyType: { enum: ['json'] },
              body: summarize(kind),
            },
            required: ['type', 'method', 'bodyType', 'body'],
          },
        },
        required: ['input'],
      },
    },
  }
}

function summarize(kind: PaidInput) {
  const { schema, main } = paidInputs[kind]
  const fields = [main, ...shownFields].filter((name) => name in schema.properties)
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((name) => [name, { type: schema.properties[name]!.type }])),
    required: [main],
  }
}
