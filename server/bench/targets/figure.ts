import { median } from '../support/report.ts'
import type { RunCost } from '../support/run-cost.ts'

/** One line of the table of targets. */
export type Figure = {
  id: string
  name: string
  value: number
  /** The bar that issue and documentation name; a figure without one is context. */
  bar?: { atLeast: number } | { atMost: number }
  /** What both sides measured, in words. */
  detail: string
}

export type CostFigures = Pick<RunCost, 'perSecond' | 'p50Ms' | 'p99Ms' | 'nodeMs' | 'postgresMs' | 'clientMs'>
export type NamedCost = CostFigures & { name: string }

export type WriteFigures = {
  name: string
  inserted: number
  updated: number
  hot: number
  deleted: number
  walRecords: number
  walBytes: number
  fullPageBytes: number
  buffers: number
  foreignKeyChecks: number
}

/** Buffers that one request touches with few and with many runs in the database. */
export type GrowthFigures = { name: string; few: number; many: number }

/** An index that is one level deeper costs one buffer more, which says nothing of a list that touches two. */
const FEWEST_COMPARED = 10

export const growthOf = ({ few, many }: GrowthFigures) =>
  Math.max(many, FEWEST_COMPARED) / Math.max(few, FEWEST_COMPARED)

/** What one file of this folder measured. */
export type Measurement = {
  figures: Figure[]
  costs?: NamedCost[]
  writes?: WriteFigures[]
  growth?: GrowthFigures[]
  /** Points of a line, for figures over time. */
  series?: Record<string, [x: number, y: number][]>
  /** What could not be measured here, and why. */
  skipped: string[]
}

export const isMet = ({ value, bar }: Figure): boolean | undefined =>
  bar && ('atLeast' in bar ? value >= bar.atLeast : value <= bar.atMost)

/** Medians of rounds, each figure for itself. */
export function medianCost(name: string, rounds: RunCost[]): NamedCost {
  const figure = (select: (cost: RunCost) => number) => median(rounds.map(select))
  return {
    name,
    perSecond: figure((cost) => cost.perSecond),
    p50Ms: figure((cost) => cost.p50Ms),
    p99Ms: figure((cost) => cost.p99Ms),
    nodeMs: figure((cost) => cost.nodeMs),
    postgresMs: figure((cost) => cost.postgresMs),
    clientMs: figure((cost) => cost.clientMs),
  }
}

export const totalMs = ({ nodeMs, postgresMs }: CostFigures) => nodeMs + postgresMs

/** The median of the ratios of the rounds: both sides of a round ran one after the other on the same machine. */
export const medianRatio = <Round>(a: Round[], b: Round[], select: (round: Round) => number): number =>
  median(a.map((round, index) => select(round) / select(b[index]!)))
