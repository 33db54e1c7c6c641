/** The requests that the dashboard's forms help to write. */
const REQUESTS = ['PolicyCreate', 'PolicyUpdate', 'BudgetUpdateRequest', 'MandateCreate']

type Description = { components?: { schemas?: Record<string, unknown> } }

/** The schemas of those requests from the API description, with every schema that they refer to. */
export function generateRequestSchemas(description: object): string {
  const schemas = (description as Description).components?.schemas ?? {}
  const chosen: Record<string, unknown> = {}
  const add = (name: string) => {
    if (name in chosen) return
    if (!(name in schemas)) throw new Error(`The API description has no schema ${name}.`)
    chosen[name] = schemas[name]
    for (const [, reference] of JSON.stringify(schemas[name]).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g))
      add(reference!)
  }
  REQUESTS.forEach(add)
  return `${JSON.stringify(chosen, null, 1)}\n`
}
