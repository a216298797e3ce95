// Usage, as charts and tables show it. Pure.

import type { Figures } from '../../src/client/aetheel-client.js'
import { agentName } from './agent-names.js'
import { formatCount, formatDuration, formatMoney } from './format.js'

export type Figure = Figures['figures'][number]

/** One position on the x axis, and one table row. */
export interface FigureRow {
  label: string
  figure: Figure
}

export interface Series {
  label: string
  /** The name of its colour. */
  colour: string
  values: Array<number | null>
}

export interface ChartModel {
  title: string
  /** Bars on top of each other, bars in front of each other, or lines. */
  form: 'stacked' | 'nested' | 'lines'
  series: Series[]
  format: (value: number) => string
  /** Allowed grid steps. Default: any round number. */
  steps?: number[]
  columns: Array<{ title: string; value: (figure: Figure) => string }>
}

const DAY_MS = 86_400_000

/** The first and last of this many days, ending today in UTC. */
export function lastDays(count: number, now: number): { from: string; to: string } {
  return { from: dayOf(now - (count - 1) * DAY_MS), to: dayOf(now) }
}

/** Contract: days have no gaps. Agents and projects are ordered by runs, most first. */
export function rowsOf({ from, to, group, figures }: Figures, projectNames: ReadonlyMap<string, string>): FigureRow[] {
  if (group !== 'day') {
    const labelOf = (key: string | null): string => {
      if (key === null) return 'No project'
      return group === 'agent' ? agentName(key) : (projectNames.get(key) ?? key)
    }
    return figures.toSorted((a, b) => b.runs - a.runs).map((figure) => ({ label: labelOf(figure.key), figure }))
  }
  const known = new Map(figures.map((figure) => [figure.key, figure]))
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
  return Array.from({ length: count }, (_, index) => {
    const key = dayOf(Date.parse(from) + index * DAY_MS)
    return { label: key, figure: known.get(key) ?? { ...NOTHING, key } }
  })
}

const NOTHING: Figure = {
  key: null,
  runs: 0,
  answered: 0,
  failed: 0,
  cancelled: 0,
  interrupted: 0,
  duration_ms: { p50: null, p95: null, total: 0 },
  first_text_ms: { p50: null, p95: null },
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: 0,
  priced_runs: 0,
  errors: {},
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
/** Round values for an axis of durations. */
const DURATION_STEPS = [
  ...[1, 10, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 5, 10, 30, 60, 120, 300, 1440].map((minutes) => minutes * MINUTE_MS),
]

/** A line through fewer days would be a few dots. */
const FEWEST_FOR_LINES = 3

export function chartsOf(rows: FigureRow[], { group, total }: Pick<Figures, 'group' | 'total'>): ChartModel[] {
  const worked = rows.filter(({ figure }) => figure.runs > 0).length
  const of = (label: string, colour: string, value: (figure: Figure) => number | null): Series => ({
    label,
    colour,
    values: rows.map(({ figure }) => value(figure)),
  })
  const spread = (
    title: string,
    timesOf: (figure: Figure) => { p50: number | null; p95: number | null },
  ): ChartModel => ({
    title,
    form: group === 'day' && worked >= FEWEST_FOR_LINES ? 'lines' : 'nested',
    format: formatDuration,
    steps: DURATION_STEPS,
    series: [
      of('p95', 'chart-second', (figure) => timesOf(figure).p95),
      of('Median', 'chart-first', (figure) => timesOf(figure).p50),
    ],
    columns: [
      { title: 'Median', value: (figure) => durationOf(timesOf(figure).p50) },
      { title: 'p95', value: (figure) => durationOf(timesOf(figure).p95) },
    ],
  })
  const duration = spread('Duration', ({ duration_ms: times }) => times)
  const inAll = { title: 'Total', value: ({ duration_ms: { total: whole } }: Figure) => formatDuration(whole) }
  return [
    {
      title: 'Runs',
      form: 'stacked',
      format: formatCount,
      series: [
        of('Answered', 'chart-good', ({ answered }) => answered),
        of('Failed', 'chart-bad', ({ failed }) => failed),
        of('Stopped', 'chart-muted', ({ cancelled }) => cancelled),
        of('Interrupted', 'chart-warn', ({ interrupted }) => interrupted),
      ],
      columns: [
        { title: 'Runs', value: ({ runs }) => String(runs) },
        { title: 'Answered', value: ({ answered }) => String(answered) },
        { title: 'Failed', value: ({ failed }) => String(failed) },
        { title: 'Stopped', value: ({ cancelled }) => String(cancelled) },
        { title: 'Interrupted', value: ({ interrupted }) => String(interrupted) },
      ],
    },
    { ...duration, columns: [...duration.columns, inAll] },
    spread('Time to first text', ({ first_text_ms: times }) => times),
    {
      title: 'Tokens',
      form: 'stacked',
      format: formatCount,
      series: [
        of('In', 'chart-first', ({ input_tokens: tokens }) => tokens),
        of('Out', 'chart-second', ({ output_tokens: tokens }) => tokens),
      ],
      columns: [
        { title: 'In', value: ({ input_tokens: tokens }) => formatCount(tokens) },
        { title: 'Out', value: ({ output_tokens: tokens }) => formatCount(tokens) },
        { title: 'Cache reads', value: ({ cache_read_tokens: tokens }) => formatCount(tokens) },
        { title: 'Cache writes', value: ({ cache_write_tokens: tokens }) => formatCount(tokens) },
      ],
    },
    {
      title: 'Cost',
      form: 'stacked',
      format: formatMoney,
      series: [of('As reported by agents', 'chart-first', ({ cost_usd: usd }) => usd)],
      columns: [
        { title: 'Cost', value: ({ cost_usd: usd, priced_runs: priced }) => (priced === 0 ? '–' : formatMoney(usd)) },
        { title: 'Runs with a cost', value: ({ priced_runs: priced, runs }) => `${priced} of ${runs}` },
      ],
    },
    errorsChart(total, of),
  ]
}

const ERROR_COLOURS = ['chart-bad', 'chart-warn', 'chart-first', 'chart-second', 'chart-muted']

function errorsChart(
  { errors }: Figure,
  of: (label: string, colour: string, value: (figure: Figure) => number) => Series,
): ChartModel {
  const reasons = Object.entries(errors)
    .toSorted(([, a], [, b]) => b - a)
    .map(([reason]) => reason)
  const shown = reasons.slice(0, reasons.length > ERROR_COLOURS.length ? ERROR_COLOURS.length - 1 : undefined)
  const rest = reasons.slice(shown.length)
  const countOf = (names: string[]) => (figure: Figure) =>
    names.reduce((sum, name) => sum + (figure.errors[name] ?? 0), 0)
  const named = rest.length === 0 ? shown : [...shown, undefined]
  return {
    title: 'Errors by reason',
    form: 'stacked',
    format: formatCount,
    series: named.map((reason, index) =>
      of(reason ?? 'Other', ERROR_COLOURS[index] ?? 'chart-muted', countOf(reason === undefined ? rest : [reason])),
    ),
    columns: reasons.map((reason) => ({ title: reason, value: (figure) => String(figure.errors[reason] ?? 0) })),
  }
}

/** What to draw, from back to front, with the index of each series. A stacked bar includes all bars below it. */
export function drawnSeries({
  form,
  series,
}: Pick<ChartModel, 'form' | 'series'>): Array<{ index: number; values: Series['values'] }> {
  if (form !== 'stacked') return series.map(({ values }, index) => ({ index, values }))
  const sums: number[] = []
  return series
    .map(({ values }, index) => ({
      index,
      values: values.map((value, place) => (sums[place] = (sums[place] ?? 0) + (value ?? 0))),
    }))
    .toReversed()
}

function durationOf(ms: number | null): string {
  return ms === null ? '–' : formatDuration(ms)
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}
