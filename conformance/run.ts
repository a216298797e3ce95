/**
 * Runs the conformance cases: `tsx conformance/run.ts [--latest] [--agent a,b] [--mode m,n] [--case x,y]`.
 *
 * A full run writes `docs/compatibility.md`, `conformance/results.json` and `conformance/surface.json`, which holds the
 * options and kinds of messages that were seen; a filtered run only prints. `--latest` tests the newest versions that
 * install instead of the pinned ones and reports how they differ; nothing in the checkout changes.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startDeadline } from '../src/core/async.js'
import type { Agent } from './agents.js'
import type { Case } from './case.js'
import { cases } from './cases.js'
import { casesOf, type Column, columns as allColumns, modes, titleOf } from './columns.js'
import { type AgentDrift, columnDrift, compare, optionsOf, renderDrift, type Surface } from './drift.js'
import { GatewayBuild } from './gateway-build.js'
import { findPinned, installLatest, type Installation, type Latest } from './installations.js'
import { type CellResult, notRun, renderDocument, renderMatrices } from './results.js'
import { openStage, type Stage } from './stage.js'
import { Seen, watching } from './wire.js'

const resultsFile = join(import.meta.dirname, 'results.json')
const surfaceFile = join(import.meta.dirname, 'surface.json')
/** Cells that run concurrently. Some keep more than one core busy, others mostly wait. */
const lanes = 4
const cellDeadlineMs = 150_000
const mostFlaky = 3
/** How long a backend has to end its agent after the deadline. */
const graceMs = 30_000

interface Cell {
  column: Column
  testCase: Case
  installation: Installation | undefined
  result: CellResult
}

const { values: options } = parseArgs({
  options: {
    latest: { type: 'boolean' },
    agent: { type: 'string' },
    mode: { type: 'string' },
    case: { type: 'string' },
  },
})
// A discontinued package has no newer version.
const columns = allColumns.filter(({ agent }) => !options.latest || !agent.isFormer)
const isWhole = [options.agent, options.mode, options.case].every((choice) => choice === undefined)
const extraCases = [...new Set(columns.flatMap((column) => column.extraCases))]
const chosenNames = {
  agents: choose('agent', [...new Set(columns.map(({ agent }) => agent.title))], options.agent),
  modes: choose('mode', [...modes], options.mode),
  cases: choose(
    'case',
    [...cases, ...extraCases].map(({ name }) => name),
    options.case,
  ),
}
const isChosen = ({ name }: Case): boolean => chosenNames.cases.includes(name)
const chosenCases = cases.filter(isChosen)
const chosenColumns = columns
  .filter(({ agent, mode }) => chosenNames.agents.includes(agent.title) && chosenNames.modes.includes(mode))
  .map((column) => ({ ...column, extraCases: column.extraCases.filter(isChosen) }))

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())

const scratch = options.latest ? await mkdtemp(join(tmpdir(), 'aetheel-latest-')) : undefined
const installations = new Map<Agent, Promise<Latest>>()
const seenBy = new Map(chosenColumns.map((column) => [titleOf(column), new Seen()]))
const cells: Cell[] = []
for (const column of chosenColumns) cells.push(...(await cellsOf(column)))
const results = cells.map(({ result }) => result)

const build = new GatewayBuild()
// By case and not by column, so that idle cells run beside busy ones.
const order = [...chosenCases, ...extraCases]
const waiting = cells.toSorted((one, other) => order.indexOf(one.testCase) - order.indexOf(other.testCase))
await Promise.all(Array.from({ length: lanes }, runLane))
await runAgain(cells.filter(({ result }) => !result.passed))
await build.remove()

const matrices = renderMatrices(chosenColumns, chosenCases, results)
const failed = results.filter(({ passed }) => !passed)
console.log(`\n${matrices.join('\n\n')}\n\n${results.length - failed.length} of ${results.length} cells passed.`)
await save()
const notUnderstood = [...seenBy].filter(([, seen]) => seen.notUnderstood.size > 0)
for (const [title, seen] of notUnderstood)
  console.log(`${title}: not understood: ${[...seen.notUnderstood].join(', ')}`)
process.exitCode = failed.length + notUnderstood.length > 0 ? 1 : 0

async function cellsOf(column: Column): Promise<Cell[]> {
  const { agent, mode } = column
  let installation: Installation | undefined
  let detail = notRun
  try {
    ;({ installation } = await install(agent))
    await column.checkMachine?.()
  } catch (error) {
    detail = `${notRun}: ${messageOf(error)}`
  }
  const version = installation?.version ?? 'not installed'
  return casesOf(column, chosenCases).map((testCase) => ({
    column,
    testCase,
    installation: detail === notRun ? installation : undefined,
    result: { agent: agent.title, version, mode, case: testCase.name, passed: false, detail },
  }))
}

/** Once for all columns of the agent. */
function install(agent: Agent): Promise<Latest> {
  const latest = installations.get(agent) ?? (scratch ? installLatest(agent, scratch) : pinned(agent))
  installations.set(agent, latest)
  return latest
}

async function pinned(agent: Agent): Promise<Latest> {
  return { installation: await findPinned(agent), uninstallable: {} }
}

async function runLane(): Promise<void> {
  for (let cell = waiting.shift(); cell && !interrupted.signal.aborted; cell = waiting.shift()) await play(cell)
}

/** Repeats failed cells one at a time, if there are few. */
async function runAgain(failedCells: Cell[]): Promise<void> {
  if (failedCells.length > mostFlaky) return
  for (const cell of failedCells) {
    await play(cell)
    if (cell.result.passed) console.log(`flaky: conformance ${titleOf(cell.column)} ${cell.testCase.name}`)
  }
}

async function play({ column, testCase, installation, result }: Cell): Promise<void> {
  const startedAt = Date.now()
  const seen = seenBy.get(titleOf(column)) ?? new Seen()
  if (installation) Object.assign(result, await watching(seen, () => runCell(column, installation, testCase)))
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1)
  const verdict = result.passed ? 'ok    ' : 'FAILED'
  console.log(`${verdict} ${titleOf(column)} ${testCase.name} (${seconds} s): ${result.detail}`)
}

async function runCell(
  { agent, expected, openPlace: usualPlace }: Column,
  installation: Installation,
  testCase: Case,
): Promise<Pick<CellResult, 'passed' | 'detail'>> {
  const stages: Stage[] = []
  const over = new AbortController()
  const { deadlineMs = cellDeadlineMs } = testCase
  const { signal, clear } = startDeadline(deadlineMs, interrupted.signal)
  try {
    const detail = await Promise.race([
      testCase.run({
        agent,
        expected,
        async open(script, openPlace = usualPlace) {
          const stage = await openStage(script, { agent, installation, openPlace, build, signal })
          stages.push(stage)
          return stage
        },
      }),
      giveUp(deadlineMs, over.signal),
    ])
    for (const stage of stages) {
      assert.deepEqual(await stage.leftovers(), [], 'no process is left')
      await stage.end()
      assert.deepEqual(await stage.sandbox.processes(), [], 'no process is left at the end')
      assert.deepEqual(await stage.sandbox.runFiles(), [], 'no files of a run are left')
    }
    return { passed: true, detail }
  } catch (error) {
    return { passed: false, detail: messageOf(error) }
  } finally {
    clear()
    over.abort()
    for (const stage of stages) await stage.close()
  }
}

/** Rejects if even ending every turn did not end the case; `signal` cancels it. */
async function giveUp(deadlineMs: number, signal: AbortSignal): Promise<never> {
  await sleep(deadlineMs + graceMs, undefined, { signal })
  throw new Error('the cell did not end at its deadline')
}

async function save(): Promise<void> {
  const json = `${JSON.stringify(results, null, 2)}\n`
  if (scratch) {
    const drift = await renderDrift(await findDrifts())
    // The agents take gigabytes; only the results are wanted.
    for (const { agent } of columns) await rm(join(scratch, agent.title), { recursive: true, force: true })
    await writeFile(join(scratch, 'results.json'), json)
    console.log(`\n${drift}\n\nResults: ${join(scratch, 'results.json')}`)
  } else if (isWhole && !interrupted.signal.aborted) {
    await writeFile(resultsFile, json)
    await writeFile(surfaceFile, `${JSON.stringify(await findSurface(), null, 2)}\n`)
    await writeFile(join(import.meta.dirname, '../docs/compatibility.md'), renderDocument(columns, cases, results))
  }
}

async function findSurface(): Promise<Surface> {
  const options: Surface['options'] = {}
  for (const [agent, { installation }] of await installed()) {
    if (!agent.isFormer) options[agent.title] = await optionsOf(agent, installation)
  }
  const kinds = [...seenBy].map(([title, seen]) => [title, [...seen.kinds].toSorted()])
  return { options, kinds: Object.fromEntries(kinds) as Surface['kinds'] }
}

async function findDrifts(): Promise<AgentDrift[]> {
  const before = JSON.parse(await readFile(surfaceFile, 'utf8')) as Surface
  const resultsBefore = JSON.parse(await readFile(resultsFile, 'utf8')) as CellResult[]
  const failuresOf = ({ agent, mode }: Column) =>
    failed
      .filter((result) => result.agent === agent.title && result.mode === mode)
      .map((result) => ({
        case: result.case,
        before: resultsBefore.find((old) => isSameCell(old, result))?.detail ?? notRun,
        now: result.detail,
      }))
  return Promise.all(
    (await installed()).map(async ([agent, { installation, uninstallable }]) => ({
      agent,
      pinned: (await findPinned(agent)).version,
      installed: installation.version,
      uninstallable,
      options: compare(before.options[agent.title] ?? [], await optionsOf(agent, installation)),
      columns: chosenColumns
        .filter((column) => column.agent === agent)
        .map((column) => {
          const title = titleOf(column)
          const seen = seenBy.get(title) ?? new Seen()
          // A subset of the cases does not show all kinds.
          const known = options.case === undefined ? [] : (before.kinds[title] ?? [])
          for (const kind of known) seen.kinds.add(kind)
          return columnDrift(title, column, seen, before, failuresOf(column))
        }),
    })),
  )
}

function isSameCell(a: CellResult, b: CellResult): boolean {
  return a.agent === b.agent && a.mode === b.mode && a.case === b.case
}

/** Skips agents that are not installed; their cells say why. */
async function installed(): Promise<Array<[Agent, Latest]>> {
  const all = await Promise.allSettled(
    [...installations].map(async ([agent, latest]): Promise<[Agent, Latest]> => [agent, await latest]),
  )
  return all.flatMap((found) => (found.status === 'fulfilled' ? [found.value] : []))
}

function choose<Name extends string>(option: string, known: Name[], names: string | undefined): Name[] {
  if (names === undefined) return known
  return names.split(',').map((name) => {
    const found = known.find((candidate) => candidate === name)
    if (found === undefined) throw new Error(`Unknown ${option} "${name}". Known: ${known.join(', ')}`)
    return found
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
