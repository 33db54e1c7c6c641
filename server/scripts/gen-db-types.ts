import type pg from 'pg'

/** Generates Kysely table types from the migrated database, so that a query against a missing column does not compile. */
const scalars: Record<string, string> = {
  text: 'string',
  bool: 'boolean',
  int2: 'number',
  int4: 'number',
  int8: 'bigint',
  float8: 'number',
  numeric: 'string',
  bytea: 'Buffer',
  json: 'unknown',
  jsonb: 'unknown',
  timestamptz: 'Date',
  date: 'string',
  tsvector: 'string',
  uuid: 'string',
}

type Column = { table_name: string; column_name: string; udt_name: string; nullable: boolean; has_default: boolean }

export async function generateDbTypes(client: Pick<pg.Client, 'query'>): Promise<string> {
  const { rows } = await client.query<Column>(`
    select c.table_name, c.column_name, c.udt_name, c.is_nullable = 'YES' as nullable,
           c.column_default is not null or c.is_identity = 'YES' or c.is_generated = 'ALWAYS' as has_default
    from information_schema.columns c
    where c.table_schema = 'public' and c.table_name <> 'migrations'
    order by c.table_name, c.ordinal_position`)
  const tables = Map.groupBy(rows, (row) => row.table_name)
  const typeDeclarations = [...tables].map(
    ([name, columns]) => `export type ${toTypeName(name)} = {\n${columns.map(formatField).join('\n')}\n}`,
  )
  const index = [...tables.keys()].map((name) => `  ${name}: ${toTypeName(name)}`).join('\n')
  return `// Made by \`npm run gen\` from the migrations; not edited by hand.\nimport type { Generated } from 'kysely'\n\n${typeDeclarations.join('\n\n')}\n\nexport type DB = {\n${index}\n}\n`
}

function formatField(column: Column): string {
  const isArray = column.udt_name.startsWith('_')
  const scalar = scalars[isArray ? column.udt_name.slice(1) : column.udt_name]
  if (!scalar)
    throw new Error(
      `${column.table_name}.${column.column_name} has the type ${column.udt_name}, which has no TypeScript type in \`scalars\`.`,
    )
  const type = `${scalar}${isArray ? '[]' : ''}${column.nullable && scalar !== 'unknown' ? ' | null' : ''}`
  return `  ${column.column_name}: ${column.has_default ? `Generated<${type}>` : type}`
}

const toTypeName = (table: string) =>
  table
    .split('_')
    .map((part) => part[0]!.toUpperCase() + part.slice(1))
    .join('')
