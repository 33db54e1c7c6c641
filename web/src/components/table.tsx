import type { ReactNode } from 'react'
import { ScrollBox } from './scroll-box.tsx'

export type Column<Row> = { name: string; render: (row: Row) => ReactNode; numeric?: boolean; wide?: boolean }

/** A table that turns into a list of cards on narrow screens. */
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
  if (rows.length === 0) return <p className="muted empty">{empty}</p>
  return (
    <ScrollBox label={label}>
      <table aria-label={label}>
        <TableHead columns={columns} />
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              <TableCells columns={columns} row={row} />
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  )
}

export const TableHead = <Row,>({ columns }: { columns: Column<Row>[] }) => (
  <thead>
    <tr>
      {columns.map(({ name, numeric }) => (
        <th key={name} scope="col" className={numeric ? 'numeric' : undefined}>
          {name}
        </th>
      ))}
    </tr>
  </thead>
)

export const TableCells = <Row,>({ columns, row }: { columns: Column<Row>[]; row: Row }) =>
  columns.map(({ name, render, numeric, wide }) => (
    <td key={name} data-label={name} className={numeric ? 'numeric' : wide ? 'wide' : undefined}>
      {render(row)}
    </td>
  ))
