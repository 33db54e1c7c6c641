import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

export type Line = {
  label: string
  values: (number | null)[]
  /** Which of the page's colours it is drawn in. */
  colour: 'accent' | 'second' | 'bad'
  unit: string
  bars?: boolean
  format?: (value: number) => string
}

const HEIGHT = 240
const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const steps = [1, 5, 15, 30].map((minutes) => minutes * MINUTE)
steps.push(...[1, 2, 3, 6, 12].map((hours) => hours * HOUR), ...[1, 2, 7, 14, 28, 91, 365].map((days) => days * DAY))

/** The finest mark of the time axis, how it reads, and what stands below it when the day or the year changes. */
const timeMarks = (from: number, mark: string, day: string | null) => [
  from,
  mark,
  day && `\n{YYYY}-${day}`,
  null,
  day && `\n${day}`,
  null,
  null,
  null,
  1,
]
const dark = matchMedia('(prefers-color-scheme: dark)')
const useDark = () =>
  useSyncExternalStore(
    (changed) => {
      dark.addEventListener('change', changed)
      return () => dark.removeEventListener('change', changed)
    },
    () => dark.matches,
  )

/** Lines over time. What it shows must also stand in a table nearby, for those who cannot see it. */
export function Chart({ label, times, lines }: { label: string; times: string[]; lines: Line[] }) {
  const box = useRef<HTMLDivElement>(null)
  const isDark = useDark()
  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((at) => Date.parse(at) / 1000), ...lines.map(({ values }) => values)],
    [times, lines],
  )
  const shape = lines.map(({ label: name, colour, unit }) => `${name} ${colour} ${unit}`).join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new shape or colour scheme makes a new chart; new figures do not
  const options = useMemo(() => chartOptions(lines, stepOf(times)), [shape, isDark, stepOf(times)])

  const plot = useRef<uPlot>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the figures of the moment are put in below
  useEffect(() => {
    const element = box.current!
    const made = new uPlot({ ...options, width: element.clientWidth || 600 }, data, element)
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [options])
  useEffect(() => plot.current?.setData(data), [data])

  return <div ref={box} className="chart" role="img" aria-label={label} />
}

const stepOf = ([first, second]: string[]) => (first && second ? (Date.parse(second) - Date.parse(first)) / 1000 : DAY)

function chartOptions(lines: Line[], step: number): Omit<uPlot.Options, 'width'> {
  const styles = getComputedStyle(document.documentElement)
  const colour = (name: string) => styles.getPropertyValue(`--${name}`).trim()
  const grid = { stroke: colour('line'), width: 1 }
  const ticks = { ...grid, size: 4 }
  const side = { pad: 0.1, soft: 0, mode: 1 } as const
  const units = [...new Set(lines.map(({ unit }) => unit))]
  return {
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { live: true },
    cursor: { drag: { x: false, y: false } },
    scales: {
      // A bar stands around its time, so that the first and the last need room at the sides.
      x: { range: (_, min, max) => (lines.some(({ bars }) => bars) ? [min - step / 2, max + step / 2] : [min, max]) },
      ...Object.fromEntries(units.map((unit) => [unit, { range: { min: side, max: side } }])),
    },
    axes: [
      {
        stroke: colour('soft'),
        grid,
        ticks,
        incrs: steps.filter((one) => one >= step),
        space: 70,
        values: [
          timeMarks(365 * DAY, '{YYYY}', null),
          timeMarks(DAY, '{MM}-{DD}', null),
          timeMarks(MINUTE, '{HH}:{mm}', '{MM}-{DD}'),
        ],
      },
      ...units.map((unit, index) => ({
        scale: unit,
        side: index === 0 ? (3 as const) : (1 as const),
        stroke: colour('soft'),
        grid: index === 0 ? grid : { show: false },
        ticks,
        label: unit,
        labelSize: 20,
        size: 60,
      })),
    ],
    series: [
      { label: 'Time (UTC)', value: '{YYYY}-{MM}-{DD} {HH}:{mm}' },
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
