import { useEffect, useMemo, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useDark } from '../theme.ts'
import { DAY, MINUTE, secondsBetweenPoints, selectTickIntervals } from './chart-scale.ts'

export type Line = {
  label: string
  values: (number | null)[]
  /** Name of the CSS colour variable. */
  colour: 'accent' | 'second' | 'error'
  unit: string
  bars?: boolean
  format?: (value: number) => string
}

const HEIGHT = 240
/** A uPlot axis format: the smallest interval it applies to, the label, and the second line when the day or year changes. */
const timeAxisFormat = (minSeconds: number, format: string, day: string | null) => [
  minSeconds,
  format,
  day && `\n{YYYY}-${day}`,
  null,
  day && `\n${day}`,
  null,
  null,
  null,
  1,
]
/** Lines or bars over time. Show the same data in a table nearby, for readers who cannot see the chart. */
export function Chart({
  label,
  times,
  lines,
  isByDay = false,
}: {
  label: string
  times: string[]
  lines: Line[]
  /** Whether the times are whole days, each as its midnight UTC. */
  isByDay?: boolean
}) {
  const containerRef = useRef<HTMLDivElement>(null)
  const isDark = useDark()
  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((at) => Date.parse(at) / 1000), ...lines.map(({ values }) => values)],
    [times, lines],
  )
  const layoutKey = lines.map(({ label: name, colour, unit }) => `${name} ${colour} ${unit}`).join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new layout or colour scheme needs a new chart; new values do not
  const options = useMemo(
    () => chartOptions(lines, secondsBetweenPoints(times), isByDay),
    [layoutKey, isDark, secondsBetweenPoints(times), isByDay],
  )

  const chartRef = useRef<uPlot>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: new data is set by the effect below
  useEffect(() => {
    const element = containerRef.current!
    const chart = new uPlot({ ...options, width: element.clientWidth || 600 }, data, element)
    chartRef.current = chart
    const resizeObserver = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }))
    resizeObserver.observe(element)
    return () => {
      resizeObserver.disconnect()
      chart.destroy()
    }
  }, [options])
  useEffect(() => chartRef.current?.setData(data), [data])

  return <div ref={containerRef} className="chart" role="img" aria-label={label} />
}

function chartOptions(lines: Line[], step: number, isByDay: boolean): Omit<uPlot.Options, 'width'> {
  const colour = resolveColour
  const grid = { stroke: colour('line'), width: 1 }
  const ticks = { ...grid, size: 4 }
  const rangePadding = { pad: 0.1, soft: 0, mode: 1 } as const
  const units = [...new Set(lines.map(({ unit }) => unit))]
  return {
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { live: true },
    cursor: { drag: { x: false, y: false } },
    scales: {
      // Bars are centred on their time, so the first and the last need room at the sides.
      x: { range: (_, min, max) => (lines.some(({ bars }) => bars) ? [min - step / 2, max + step / 2] : [min, max]) },
      ...Object.fromEntries(units.map((unit) => [unit, { range: { min: rangePadding, max: rangePadding } }])),
    },
    axes: [
      {
        stroke: colour('muted'),
        grid,
        ticks,
        incrs: selectTickIntervals(step),
        space: 70,
        values: [
          timeAxisFormat(365 * DAY, '{YYYY}', null),
          timeAxisFormat(DAY, '{MM}-{DD}', null),
          timeAxisFormat(MINUTE, '{HH}:{mm}', '{MM}-{DD}'),
        ],
      },
      ...units.map((unit, index) => ({
        scale: unit,
        side: index === 0 ? (3 as const) : (1 as const),
        stroke: colour('muted'),
        grid: index === 0 ? grid : { show: false },
        ticks,
        label: unit,
        labelSize: 20,
        size: 60,
      })),
    ],
    series: [
      isByDay
        ? { label: 'Day', value: '{YYYY}-{MM}-{DD}' }
        : { label: 'Time (UTC)', value: '{YYYY}-{MM}-{DD} {HH}:{mm}' },
      ...lines.map(({ label, colour: name, unit, bars, format }) => ({
        label,
        scale: unit,
        stroke: colour(name),
        width: 2,
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value === null ? '–' : (format?.(value) ?? String(value))),
        ...(bars && { fill: colour(`${name}-wash`), paths: uPlot.paths.bars!({ size: [0.6, 60] }) }),
      })),
    ],
  }
}

/** A canvas needs the colour itself, and a variable may hold one for each theme. */
function resolveColour(name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
