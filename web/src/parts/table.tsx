import type { ReactNode } from 'react'

export type Column<Row> = { name: string; show: (row: Row) => ReactNode; number?: boolean; wide?: boolean }

/** A table that becomes a list of cards where there is no room for columns. */
export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
  empty,
}: {
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  empty: ReactNode
}) {
  if (rows.length === 0) return <p className="soft empty">{empty}</p>
  return (
    <div className="scroll">
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" className={number ? 'number' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ name, show, number, wide }) => (
                <td key={name} data-label={name} className={number ? 'number' : wide ? 'wide' : undefined}>
                  {show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
