import { cpus, totalmem } from 'node:os'

export const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

export const describeMachine = (): string =>
  `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}, ${new Date().toISOString().slice(0, 16)}Z`

/** Four significant digits at most, as figures that vary by some per cent deserve. */
export function formatFigure(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en').replaceAll(',', ' ')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** Rows of cells as aligned text: the first column to the left, the others to the right. */
export function formatTable(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
    )
    .join('\n')
}
