import type { ApiDescription, Field, Operation } from './api-description.ts'
import { type Guide, guidePath } from './guides.ts'
import { plainText } from './markdown.ts'

/** What the page searches, as rows to keep it small: kind, title, context, address, other text. */
export type SearchRow = [kind: 'call' | 'field' | 'guide', title: string, context: string, url: string, text: string]

const MAX_TEXT = 1_500

export const operationPath = (operationId: string) => `/docs/operations/${operationId}`

export function searchRows(api: ApiDescription, guides: readonly Guide[]): SearchRow[] {
  return [
    ...api.operations.map((operation) => describeOperation(operation)),
    ...api.operations.flatMap((operation) => requestFields(api, operation)),
    ...answerFields(api),
    ...guides.flatMap(({ name, title, sections }) =>
      sections.map(
        ({ id, heading, level, text }): SearchRow => [
          'guide',
          heading,
          level === 1 ? '' : title,
          `${guidePath(name)}${level === 1 ? '' : `#${id}`}`,
          text.replaceAll(/\s+/g, ' ').slice(0, MAX_TEXT),
        ],
      ),
    ),
  ]
}

const describeOperation = ({
  operationId,
  method,
  path,
  summary = '',
  description = '',
  tag,
}: Operation): SearchRow => [
  'call',
  `${method.toUpperCase()} ${path}`,
  summary,
  operationPath(operationId),
  `${operationId} ${tag} ${plainText(description)}`,
]

const flatten = (fields: readonly Field[]): Field[] => fields.flatMap((field) => [field, ...flatten(field.fields)])

function requestFields(api: ApiDescription, operation: Operation): SearchRow[] {
  const call = `${operation.method.toUpperCase()} ${operation.path}`
  const url = operationPath(operation.operationId)
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, description, schema }): SearchRow => [
      'field',
      name,
      `${place} of ${call}`,
      `${url}#${place}.${name}`,
      plainText(description ?? schema?.description ?? ''),
    ],
  )
  const body = operation.requestBody?.content?.['application/json']?.schema
  const fields = body ? flatten(api.fieldsOf(body, 'body')) : []
  return [
    ...parameters,
    ...fields.map(
      ({ path, description }): SearchRow => [
        'field',
        path.slice('body.'.length),
        `body of ${call}`,
        `${url}#${path}`,
        plainText(description),
      ],
    ),
  ]
}

/** Each field of an answer once, at the first call that answers with it: the same resources appear in many answers. */
function answerFields(api: ApiDescription): SearchRow[] {
  const rows = new Map<string, SearchRow>()
  for (const operation of api.operations)
    for (const [status, { content }] of Object.entries(operation.responses)) {
      const schema = content?.['application/json']?.schema
      if (!status.startsWith('2') || !schema) continue
      for (const { name, path, description } of flatten(api.fieldsOf(schema, `answer-${status}`))) {
        const call = `${operation.method.toUpperCase()} ${operation.path}`
        const row: SearchRow = [
          'field',
          name,
          `answer of ${call}`,
          `${operationPath(operation.operationId)}#${path}`,
          plainText(description),
        ]
        if (!rows.has(name)) rows.set(name, row)
      }
    }
  return [...rows.values()]
}
