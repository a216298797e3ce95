/** The results of a conformance run, and how they are shown. */
import { cannot, type Case } from './case.js'
import { casesOf, type Column, type Mode, modes, titleOf } from './columns.js'

export interface CellResult {
  agent: string
  version: string
  mode: Mode
  case: string
  passed: boolean
  /** What was seen if it passed; what is wrong if it did not. */
  detail: string
}

/** A cell holds this until it has run, so one that never did counts as failed. */
export const notRun = 'not run'

/** A table of the common cases, and one for each mode that has additional ones. */
export function renderMatrices(columns: Column[], cases: Case[], results: CellResult[]): string[] {
  const further = modes.flatMap((mode) => {
    const ofMode = columns.filter((column) => column.mode === mode && column.extraCases.length > 0)
    const extraCases = ofMode[0]?.extraCases ?? []
    return extraCases.length > 0 ? [renderMatrix(ofMode, extraCases, results)] : []
  })
  return [...(cases.length > 0 ? [renderMatrix(columns, cases, results)] : []), ...further]
}

function renderMatrix(columns: Column[], cases: Case[], results: CellResult[]): string {
  const heads = columns.map((column) => `${titleOf(column)} ${versionOf(column, results)}`)
  const rows = cases.map((testCase) => [
    testCase.title,
    ...columns.map((column) => mark(find(results, column, testCase))),
  ])
  return table(['Case', ...heads], rows)
}

export function renderDocument(columns: Column[], cases: Case[], results: CellResult[]): string {
  const details = columns.flatMap((column) => [
    `## ${titleOf(column)}`,
    `\`${column.agent.packageName}\` ${versionOf(column, results)}, ${column.manner}.`,
    table(
      ['Case', 'Seen'],
      casesOf(column, cases).map((testCase) => [testCase.title, find(results, column, testCase)?.detail ?? notRun]),
    ),
  ])
  const [matrix = '', ...further] = renderMatrices(columns, cases, results)
  return [
    '# Compatibility',
    'Written by `npm run conformance`; not edited by hand. Each cell is the real command line, driven by its backend, against',
    'a scripted model on loopback, in a home directory of its own, with an MCP server that does not end by itself where the',
    'command line knows such. The model refuses a history with a tool call that has no result, as the real ones do. Every',
    'cell also checks that no process is left behind and, where the backend is driven alone, the order of the events. In the',
    'last rows a whole gateway is driven, in a process of its own; ten seconds after its SIGKILL nothing may be left. How the',
    'cells are defined: `conformance/cases.ts`, `conformance/gateway-cases.ts` and `conformance/expectations.ts`.',
    '',
    'A command line is one process per turn, unless its column says `live`: one that stays for the next turns, of its',
    'conversation or of all; `server`: one for all turns, which we start and supervise; or `pod`: one process per turn, reached',
    'by the real `kubectl` through an API server that is made up, in a process namespace of its own. Each of these has further',
    'cases, in a table of their own. In a `live` column no turn may fall back to a process of its own, unless it is said.',
    '',
    '`cannot`: the command line has no means for it, and what it does instead is what we expect. `-`: not asked; of a package',
    'that another one has replaced only the most important cases are.',
    '',
    matrix,
    '',
    ...further.flatMap((extraMatrix) => [extraMatrix, '']),
    details.join('\n\n'),
    '',
  ].join('\n')
}

function mark(result: CellResult | undefined): string {
  if (!result) return '-'
  if (!result.passed) return '**failed**'
  return result.detail.startsWith(cannot) ? 'cannot' : 'yes'
}

function versionOf({ agent }: Column, results: CellResult[]): string {
  return results.find((result) => result.agent === agent.title)?.version ?? notRun
}

function find(results: CellResult[], { agent, mode }: Column, testCase: Case): CellResult | undefined {
  return results.find((result) => result.agent === agent.title && result.mode === mode && result.case === testCase.name)
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(escape).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function escape(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replace(/\s+/g, ' ')
}
