/** The result of a benchmark, and how it is shown. */
import type { Agent } from '../conformance/agents.js'

export interface Measurement {
  name: string
  value: number
  unit: string
  goal: string
  holds: boolean
  /** The data it was computed from. */
  figures?: Record<string, Record<string, number>>
}

export interface BenchOptions {
  /** How many times each side of a comparison is measured. */
  pairs: number
  /** The agents that are really started. */
  agents: Agent[]
  /** Ends the benchmark early with an exception. */
  signal: AbortSignal
  /** Reports progress to a person. */
  progress(line: string): void
}

export function atMost(name: string, value: number, limit: number, unit: string): Measurement {
  return { name, value: rounded(value), unit, goal: `<= ${rounded(limit)}`, holds: value <= limit }
}

export function atLeast(name: string, value: number, limit: number, unit: string): Measurement {
  return { name, value: rounded(value), unit, goal: `>= ${rounded(limit)}`, holds: value >= limit }
}

/** Approximates an idle machine on a busy one: less noisy than the mean, less lucky than the best. */
export function lowerQuartile(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = (sorted.length - 1) / 4
  const [below, above] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]]
  if (below === undefined || above === undefined) throw new Error('Nothing was measured')
  return below + (above - below) * (position % 1)
}

export function renderTable(measurements: Measurement[]): string {
  const rows = measurements.map(({ name, value, unit, goal, holds }) => [
    name,
    String(value),
    unit,
    goal,
    holds ? 'yes' : 'NO',
  ])
  const table = [['name', 'value', 'unit', 'goal', 'met'], ...rows]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')
}

export function rounded(value: number): number {
  return Number(value.toFixed(Math.abs(value) < 10 ? 3 : 1))
}
