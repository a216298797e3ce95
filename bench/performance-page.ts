/** The measured part of `docs/performance.md`, generated only from `bench/results.json`. */
import { BACKEND_NAMES, type BackendName } from '../src/backends/types.js'
import type { Measurement } from './measurement.js'

const BEGIN = '<!-- Written by npm run bench: -->'
const END = '<!-- Until here. -->'

const AGENTS: Record<BackendName, string> = {
  claude: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'OpenCode',
  pi: 'Pi',
}

type Column = [title: string, figure: string, of: string]

const TURN_COLUMNS: [title: string, way: string][] = [
  ['CLI, cold', 'cold'],
  ['`run()`, cold', 'oneShot'],
  ['CLI, warm', 'bare'],
  ['`run()`, warm', 'live'],
  ['Gateway', 'gateway'],
  ['Vendor SDK', 'sdk'],
]

const TABLES: { title: string; benchmark: string; columns: Column[] }[] = [
  {
    title: 'Time per turn, in ms',
    benchmark: 'live-turns',
    columns: TURN_COLUMNS.map(([title, way]) => [title, 'turnMs', way]),
  },
  {
    title: 'Time to first text, in ms',
    benchmark: 'live-turns',
    columns: TURN_COLUMNS.map(([title, way]) => [title, 'firstTextMs', way]),
  },
  {
    title: 'An answer of 20,000 characters, streamed eight at a time',
    benchmark: 'live-streams',
    columns: [
      ['CLI, ms', 'bare', 'totalMs'],
      ['`run()`, ms', 'run', 'totalMs'],
      ['Gateway, ms', 'gateway', 'totalMs'],
      ['CLI, CPU s/MB', 'gateway', 'agentCpuSecondsPerMb'],
      ['`run()`, CPU s/MB', 'run', 'ownCpuSecondsPerMb'],
      ['Gateway, CPU s/MB', 'gateway', 'ownCpuSecondsPerMb'],
    ],
  },
  {
    title: 'Eight conversations at once, time to the last answer, in ms',
    benchmark: 'live-at-once',
    columns: [
      ['CLI', 'totalMs', 'bare'],
      ['`run()`', 'totalMs', 'run'],
      ['Gateway', 'totalMs', 'gateway'],
    ],
  },
  {
    title: 'Memory of five idle conversations, in MB',
    benchmark: 'live-memory',
    columns: [
      ['CLI', 'memoryMb', 'bare'],
      ['CLI and gateway', 'memoryMb', 'gateway'],
    ],
  },
]

/** The page with its measurements replaced. Contract: leaves nothing for the formatter to change. */
export function withResults(page: string, results: Measurement[]): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/performance.md has no ${BEGIN} … ${END}`)
  return [before, BEGIN, '\n\n', sections(results).join('\n\n'), '\n\n', END, after].join('')
}

function sections(results: Measurement[]): string[] {
  const tables = TABLES.flatMap(({ title, benchmark, columns }) => {
    const rows = BACKEND_NAMES.flatMap((agent) => {
      const figures = results.find(({ name, figures: any }) => any && name.startsWith(`${benchmark}.${agent}`))?.figures
      return figures ? [[AGENTS[agent], ...columns.map(([, figure, of]) => String(figures[figure]?.[of] ?? ''))]] : []
    })
    return rows.length === 0 ? [] : [`## ${title}`, table(['Agent', ...columns.map(([name]) => name)], rows)]
  })
  if (tables.length === 0) return ['Not measured yet.']
  const goals = results.filter(({ name }) => name.startsWith('live-'))
  const rows = goals.map(({ name, value, unit, goal, holds }) => [
    `\`${name}\``,
    `${value} ${unit}`,
    goal.replace('<=', 'at most'),
    holds ? 'yes' : '**no**',
  ])
  return [...tables, '## Goals', table(['Goal', 'Measured', 'Limit', 'Met'], rows)]
}

function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
