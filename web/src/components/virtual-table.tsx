import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ScrollBox } from './scroll-box.tsx'
import { type Column, TableCells, TableHead } from './table.tsx'

const ROW_HEIGHT = 38
const OVERSCAN = 6

/** A table of any length: only the rows in view are in the page, and the next ones are asked for when its end comes near. */
export function VirtualTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  empty,
  onEndNear,
}: {
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  empty: ReactNode
  onEndNear: () => void
}) {
  const box = useRef<HTMLDivElement>(null)
  const [scrollMargin, setScrollMargin] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what stands above the table may change with its rows
  useEffect(() => {
    if (box.current) setScrollMargin(box.current.getBoundingClientRect().top + window.scrollY)
  }, [rows.length === 0])
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => rowKey(rows[index]!),
    overscan: OVERSCAN,
    scrollMargin,
  })
  const items = virtualizer.getVirtualItems()
  const lastIndex = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (lastIndex >= rows.length - OVERSCAN) onEndNear()
  }, [lastIndex, rows.length, onEndNear])
  if (rows.length === 0) return <p className="muted empty">{empty}</p>
  const above = (items[0]?.start ?? scrollMargin) - scrollMargin
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? scrollMargin) - scrollMargin)
  return (
    <ScrollBox label={label} ref={box}>
      <table aria-label={label} aria-rowcount={rows.length + 1}>
        <TableHead columns={columns} />
        <tbody>
          <Space height={above} />
          {items.map(({ index, key }) => (
            <tr key={key} ref={virtualizer.measureElement} data-index={index} aria-rowindex={index + 2}>
              <TableCells columns={columns} row={rows[index]!} />
            </tr>
          ))}
          <Space height={below} />
        </tbody>
      </table>
    </ScrollBox>
  )
}

/** In place of the rows out of view. */
const Space = ({ height }: { height: number }) => height > 0 && <tr className="space" style={{ height }} />
