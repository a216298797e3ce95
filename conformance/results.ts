/** What came out of a conformance run, and how it is shown. */
import type { Agent } from './agents.js'
import type { Case } from './case.js'

export interface CellResult {
  agent: string
  version: string
  /** How long the agent's process lives: one per turn. */
  mode: 'oneshot'
  case: string
  passed: boolean
  /** What was seen when it passed; what is wrong when it did not. */
  detail: string
}

/** Begins the detail of a cell that holds because the agent is known not to be able to do it. */
export const cannot = 'cannot: '

/** A cell holds this until it has run, so one that never did counts as failed. */
export const notRun = 'not run'

export function renderMatrix(agents: Agent[], cases: Case[], results: CellResult[]): string {
  const heads = agents.map(({ name }) => `${name} ${results.find(({ agent }) => agent === name)?.version}`)
  const rows = cases.map((testCase) => [
    testCase.title,
    ...agents.map(({ name }) => mark(find(results, name, testCase))),
  ])
  return table(['Case', ...heads], rows)
}

export function renderDocument(agents: Agent[], cases: Case[], results: CellResult[]): string {
  const details = agents.flatMap(({ name, packageName }) => [
    `## ${name}`,
    `\`${packageName}\` ${results.find(({ agent }) => agent === name)?.version}, one process per turn.`,
    table(
      ['Case', 'Seen'],
      cases.map((testCase) => [testCase.title, find(results, name, testCase)?.detail ?? notRun]),
    ),
  ])
  return [
    '# Compatibility',
    'Written by `npm run conformance`; not edited by hand. Each cell is the real command line, driven by its backend, against',
    'a scripted model on loopback, in a home directory of its own, with an MCP server that does not end by itself where the',
    'command line knows such. The model refuses a history with a tool call that has no result, as the real ones do. Every',
    'cell also checks that no process is left behind and, where the backend is driven alone, the order of the events. In the',
    'last rows a whole gateway is driven, in a process of its own; ten seconds after its SIGKILL nothing may be left. How the',
    'cells are defined: `conformance/cases.ts`, `conformance/gateway-cases.ts` and `conformance/expectations.ts`.',
    '',
    '`cannot`: the command line has no means for it, and what it does instead is what we expect.',
    '',
    renderMatrix(agents, cases, results),
    '',
    details.join('\n\n'),
    '',
  ].join('\n')
}

function mark(result: CellResult | undefined): string {
  if (!result?.passed) return '**failed**'
  return result.detail.startsWith(cannot) ? 'cannot' : 'yes'
}

function find(results: CellResult[], agent: string, testCase: Case): CellResult | undefined {
  return results.find((result) => result.agent === agent && result.case === testCase.name)
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(escape).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function escape(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replace(/\s+/g, ' ')
}
