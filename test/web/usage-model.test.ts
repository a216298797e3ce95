import { expect, it } from 'vitest'
import type { Figures } from '../../src/client/aetheel-client.js'
import { chartsOf, drawnSeries, type Figure, lastDays, rowsOf } from '../../web/src/usage-model.js'

const FIGURE: Figure = {
  key: null,
  runs: 3,
  answered: 2,
  failed: 1,
  cancelled: 0,
  interrupted: 0,
  duration_ms: { p50: 1000, p95: 3000, total: 6000 },
  first_text_ms: { p50: 200, p95: 900 },
  input_tokens: 1200,
  output_tokens: 300,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: 0.5,
  priced_runs: 2,
  errors: { auth: 1 },
}

function figuresOf(group: Figures['group'], figures: Figure[], total = FIGURE): Figures {
  return { from: '2026-02-27', to: '2026-03-02', group, figures, total }
}

it('counts days in UTC, including today', () => {
  expect(lastDays(3, Date.UTC(2026, 2, 1, 23, 59))).toEqual({ from: '2026-02-27', to: '2026-03-01' })
})

it('has a row for each day, even without runs', () => {
  const rows = rowsOf(figuresOf('day', [{ ...FIGURE, key: '2026-02-28' }]), new Map())
  expect(rows.map(({ label, figure }) => [label, figure.runs, figure.duration_ms.p50])).toEqual([
    ['2026-02-27', 0, null],
    ['2026-02-28', 3, 1000],
    ['2026-03-01', 0, null],
    ['2026-03-02', 0, null],
  ])
})

it('shows agents and projects by name, most runs first', () => {
  const few = { ...FIGURE, runs: 1 }
  const agents = rowsOf(
    figuresOf('agent', [
      { ...few, key: 'git' },
      { ...FIGURE, key: 'claudecode' },
    ]),
    new Map(),
  )
  const projects = [
    { ...few, key: null },
    { ...FIGURE, key: 'shop' },
    { ...few, key: 'gone' },
  ]
  const named = rowsOf(figuresOf('project', projects), new Map([['shop', 'Web shop']]))
  expect([agents, named].map((rows) => rows.map(({ label }) => label))).toEqual([
    ['Claude Code', 'git'],
    ['Web shop', 'No project', 'gone'],
  ])
})

it('stacks series, the tallest at the back, and leaves gaps in lines', () => {
  const series = [
    { label: 'a', colour: '', values: [1, 0, null] },
    { label: 'b', colour: '', values: [2, 5, 1] },
  ]
  expect([drawnSeries({ form: 'stacked', series }), drawnSeries({ form: 'lines', series })]).toEqual([
    [
      { index: 1, values: [3, 5, 1] },
      { index: 0, values: [1, 0, 0] },
    ],
    [
      { index: 0, values: [1, 0, null] },
      { index: 1, values: [2, 5, 1] },
    ],
  ])
})

it('draws the most frequent reasons, the rest as one, and lists all in the table', () => {
  const errors = { auth: 9, timeout: 8, exit: 7, spawn: 6, cancelled: 2, no_result: 1 }
  const figures = figuresOf('agent', [{ ...FIGURE, key: 'pi', errors }], { ...FIGURE, errors })
  const chart = chartsOf(rowsOf(figures, new Map()), figures).find(({ title }) => title === 'Errors by reason')
  expect([
    chart?.series.map(({ label, values }) => [label, ...values]),
    chart?.columns.map(({ title, value }) => [title, value({ ...FIGURE, errors: { exit: 2 } })]),
  ]).toEqual([
    [
      ['auth', 9],
      ['timeout', 8],
      ['exit', 7],
      ['spawn', 6],
      ['Other', 3],
    ],
    [
      ['auth', '0'],
      ['timeout', '0'],
      ['exit', '2'],
      ['spawn', '0'],
      ['cancelled', '0'],
      ['no_result', '0'],
    ],
  ])
})

it('has no chart of errors if there were none', () => {
  const figures = figuresOf('day', [], { ...FIGURE, errors: {} })
  expect(chartsOf(rowsOf(figures, new Map()), figures).at(-1)?.series).toEqual([])
})
