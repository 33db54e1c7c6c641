type Schema = Record<string, unknown> & { title?: unknown; description?: unknown }

/**
 * Moves every schema that has a `title` to `components.schemas` under that name and leaves a `$ref` in its place, so that
 * generated clients have one type for each resource. Two different schemas of one name are an error. A reference may have
 * a description of its own; `predefined` components keep theirs.
 */
export function extractComponents(
  paths: unknown,
  predefined: Record<string, object> = {},
): { paths: unknown; schemas: Record<string, Schema> } {
  const schemas = { ...predefined } as Record<string, Schema>
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    const { title, ...schema } = Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, visit(member)]),
    ) as Schema
    if (typeof title !== 'string') return title === undefined ? schema : { ...schema, title }
    const $ref = `#/components/schemas/${title}`
    if (title in predefined) return { $ref }
    schemas[title] ??= schema
    const component = schemas[title]
    if (withoutDescription(component) !== withoutDescription(schema))
      throw new Error(`Two different schemas have the title '${title}'.`)
    const { description } = schema
    return description === component.description ? { $ref } : { $ref, description }
  }
  const visited = visit(paths)
  return { paths: visited, schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))) }
}

const withoutDescription = ({ description: _, ...schema }: Schema) => JSON.stringify(schema)
