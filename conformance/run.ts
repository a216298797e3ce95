/**
 * Runs the conformance cases: `tsx conformance/run.ts [--latest] [--agent a,b] [--mode m,n] [--case x,y]`.
 *
 * A whole run writes `docs/compatibility.md` and `conformance/results.json`; a filtered one only prints. With
 * `--latest` the newest versions that install are tested instead of the pinned ones, and nothing in the checkout changes.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { agents, type Agent } from './agents.js'
import type { Case } from './case.js'
import { cases } from './cases.js'
import { type Column, columns, modes, titleOf } from './columns.js'
import { GatewayBuild } from './gateway-build.js'
import { findPinned, installLatest, type Installation } from './installations.js'
import { type CellResult, notRun, renderDocument, renderMatrices } from './results.js'
import { openStage, type Stage } from './stage.js'

/** Cells played at the same time: each keeps about one core busy. */
const lanes = 2
const cellDeadlineMs = 150_000
/** What a backend has to end its agent when the deadline has passed. */
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
const isWhole = [options.agent, options.mode, options.case].every((choice) => choice === undefined)
const extraCases = [...new Set(columns.flatMap((column) => column.extraCases))]
const chosenNames = {
  agents: choose(
    'agent',
    agents.map(({ name }) => name),
    options.agent,
  ),
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
  .filter(({ agent, mode }) => chosenNames.agents.includes(agent.name) && chosenNames.modes.includes(mode))
  .map((column) => ({ ...column, extraCases: column.extraCases.filter(isChosen) }))

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())

const scratch = options.latest ? await mkdtemp(join(tmpdir(), 'aetheel-latest-')) : undefined
const installations = new Map<Agent, Promise<Installation>>()
const cells: Cell[] = []
for (const column of chosenColumns) cells.push(...(await cellsOf(column)))
const results = cells.map(({ result }) => result)

const build = new GatewayBuild()
const waiting = [...cells]
await Promise.all(Array.from({ length: lanes }, runLane))
await build.remove()

const matrices = renderMatrices(chosenColumns, chosenCases, results)
const failed = results.filter(({ passed }) => !passed)
console.log(`\n${matrices.join('\n\n')}\n\n${results.length - failed.length} of ${results.length} cells hold.`)
await save()
process.exitCode = failed.length > 0 ? 1 : 0

async function cellsOf(column: Column): Promise<Cell[]> {
  const { agent, mode } = column
  let installation: Installation | undefined
  let detail = notRun
  try {
    installation = await install(agent)
    await column.checkMachine?.()
  } catch (error) {
    detail = `${notRun}: ${messageOf(error)}`
  }
  const version = installation?.version ?? 'not installed'
  return [...chosenCases, ...column.extraCases].map((testCase) => ({
    column,
    testCase,
    installation: detail === notRun ? installation : undefined,
    result: { agent: agent.name, version, mode, case: testCase.name, passed: false, detail },
  }))
}

/** Once for all columns of the agent. */
function install(agent: Agent): Promise<Installation> {
  const installation = installations.get(agent) ?? (scratch ? installLatest(agent, scratch) : findPinned(agent))
  installations.set(agent, installation)
  return installation
}

async function runLane(): Promise<void> {
  for (let cell = waiting.shift(); cell && !interrupted.signal.aborted; cell = waiting.shift()) {
    const { column, testCase, installation, result } = cell
    const startedAt = Date.now()
    if (installation) Object.assign(result, await runCell(column, installation, testCase))
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1)
    const verdict = result.passed ? 'ok    ' : 'FAILED'
    console.log(`${verdict} ${titleOf(column)} ${testCase.name} (${seconds} s): ${result.detail}`)
  }
}

async function runCell(
  { agent, expected, openPlace: usualPlace }: Column,
  installation: Installation,
  testCase: Case,
): Promise<Pick<CellResult, 'passed' | 'detail'>> {
  const stages: Stage[] = []
  const over = new AbortController()
  const { deadlineMs = cellDeadlineMs } = testCase
  const signal = AbortSignal.any([AbortSignal.timeout(deadlineMs), interrupted.signal])
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
    over.abort()
    for (const stage of stages) await stage.close()
  }
}

/** Rejects when even the end of every turn did not end the case; `signal` says that it is not needed any more. */
async function giveUp(deadlineMs: number, signal: AbortSignal): Promise<never> {
  await sleep(deadlineMs + graceMs, undefined, { signal })
  throw new Error('the cell did not end when its time was over')
}

async function save(): Promise<void> {
  const json = `${JSON.stringify(results, null, 2)}\n`
  if (scratch) {
    // The agents are gigabytes, the results are what is wanted.
    for (const { name } of agents) await rm(join(scratch, name), { recursive: true, force: true })
    await writeFile(join(scratch, 'results.json'), json)
    console.log(`Results: ${join(scratch, 'results.json')}`)
  } else if (isWhole && !interrupted.signal.aborted) {
    await writeFile(join(import.meta.dirname, 'results.json'), json)
    await writeFile(join(import.meta.dirname, '../docs/compatibility.md'), renderDocument(columns, cases, results))
  }
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
