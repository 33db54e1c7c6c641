/** Small SVG plots that can be read on a light and on a dark page. */

const WIDTH = 760
const LABEL_WIDTH = 320
const VALUE_WIDTH = 130
const ROW_HEIGHT = 26
const BAR_HEIGHT = 16
const HEAD_HEIGHT = 56

const STYLE = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.note { fill: #59636e }
.a { fill: #2f6feb } .b { fill: #8250df } .c { fill: #8c959f }
.axis { stroke: #8c959f } .bar { stroke: #cf222e; stroke-dasharray: 4 3 }
.line-a { fill: none; stroke: #2f6feb; stroke-width: 2 } .line-b { fill: none; stroke: #8250df; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .note { fill: #9198a1 }
  .a { fill: #58a6ff } .b { fill: #bc8cff } .c { fill: #6e7681 } .bar { stroke: #ff7b72 }
  .line-a { stroke: #58a6ff } .line-b { stroke: #bc8cff }
}
</style>`

export type BarSegment = { value: number; colour: 'a' | 'b' | 'c' }
export type BarRow = { label: string; segments: BarSegment[]; text: string }
type Legend = { colour: 'a' | 'b' | 'c'; text: string }[]

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const round = (value: number) => Math.round(value * 10) / 10

const document = (height: number, title: string, content: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}">
${STYLE}
<text class="title" x="0" y="18">${escapeXml(title)}</text>
${content}
</svg>
`

function drawLegend(legend: Legend): string {
  let x = 0
  return legend
    .map(({ colour, text }) => {
      const item = `<rect class="${colour}" x="${x}" y="32" width="12" height="12"/><text class="note" x="${x + 18}" y="43">${escapeXml(text)}</text>`
      x += 40 + text.length * 7
      return item
    })
    .join('\n')
}

/** Horizontal bars, stacked from segments; `limit` draws a dashed line at a value. */
export function plotBars(
  title: string,
  rows: BarRow[],
  options: { legend?: Legend; limit?: number; max?: number } = {},
): string {
  const totals = rows.map(({ segments }) => segments.reduce((sum, { value }) => sum + value, 0))
  const max = options.max ?? Math.max(...totals, options.limit ?? 0)
  const plotWidth = WIDTH - LABEL_WIDTH - VALUE_WIDTH
  const scale = (value: number) => (Math.min(value, max) / max) * plotWidth
  const bottom = HEAD_HEIGHT + rows.length * ROW_HEIGHT
  const bars = rows.map(({ label, segments, text }, index) => {
    const y = HEAD_HEIGHT + index * ROW_HEIGHT
    let x = LABEL_WIDTH
    const rects = segments.map(({ value, colour }) => {
      const width = Math.min(scale(value), LABEL_WIDTH + plotWidth - x)
      const rect = `<rect class="${colour}" x="${round(x)}" y="${y}" width="${round(Math.max(width, 0.5))}" height="${BAR_HEIGHT}"/>`
      x += width
      return rect
    })
    return `<text x="0" y="${y + 13}">${escapeXml(label)}</text>${rects.join('')}<text class="note" x="${round(x + 6)}" y="${y + 13}">${escapeXml(text)}</text>`
  })
  const limit =
    options.limit === undefined
      ? ''
      : `<line class="bar" x1="${round(LABEL_WIDTH + scale(options.limit))}" x2="${round(LABEL_WIDTH + scale(options.limit))}" y1="${HEAD_HEIGHT - 6}" y2="${bottom}"/>`
  const axis = `<line class="axis" x1="${LABEL_WIDTH}" x2="${LABEL_WIDTH}" y1="${HEAD_HEIGHT - 6}" y2="${bottom}"/>`
  return document(bottom + 8, title, [drawLegend(options.legend ?? []), ...bars, axis, limit].join('\n'))
}

/** Lines over time, from zero. */
export function plotLines(
  title: string,
  lines: { colour: 'a' | 'b'; text: string; points: [number, number][] }[],
  units: { x: string; y: string },
): string {
  const height = 260
  const [left, right, top, bottom] = [56, WIDTH - 24, HEAD_HEIGHT, height - 34]
  const points = lines.flatMap((line) => line.points)
  const maxX = Math.max(...points.map(([x]) => x))
  const maxY = Math.max(...points.map(([, y]) => y)) * 1.05
  const toX = (x: number) => round(left + (x / maxX) * (right - left))
  const toY = (y: number) => round(bottom - (y / maxY) * (bottom - top))
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<text class="note" x="0" y="${toY(maxY * share) + 4}">${Math.round(maxY * share)}</text><text class="note" x="${toX(maxX * share) - 8}" y="${height - 12}">${round(maxX * share)}</text>`,
  )
  const paths = lines.map(
    (line) =>
      `<polyline class="line-${line.colour}" points="${line.points.map(([x, y]) => `${toX(x)},${toY(y)}`).join(' ')}"/>`,
  )
  const axes = `<line class="axis" x1="${left}" x2="${left}" y1="${top}" y2="${bottom}"/><line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`
  const legend = drawLegend(lines.map(({ colour, text }) => ({ colour, text: `${text}, ${units.y}` })))
  return document(height, `${title} (${units.x})`, [legend, ...ticks, axes, ...paths].join('\n'))
}
