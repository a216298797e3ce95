/**
 * Runs the conformance cases: `tsx conformance/run.ts [--latest] [--agent a,b] [--case x,y]`.
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
import { expectations } from './expectations.js'
import { GatewayBuild } from './gateway-build.js'
import { findPinned, installLatest } from './installations.js'
import { type CellResult, notRun, renderDocument, renderMatrix } from './results.js'
import { type Installation, openStage, type Stage } from './stage.js'

/** Cells played at the same time: each keeps about one core busy. */
const lanes = 2
const cellDeadlineMs = 150_000
/** What a backend has to end its agent when the deadline has passed. */
const graceMs = 30_000

const { values: options } = parseArgs({
  options: { latest: { type: 'boolean' }, agent: { type: 'string' }, case: { type: 'string' } },
})
const chosenAgents = choose('agent', agents, options.agent)
const chosenCases = choose('case', cases, options.case)

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())

const scratch = options.latest ? await mkdtemp(join(tmpdir(), 'aetheel-latest-')) : undefined
const installations = new Map<Agent, Installation>()
const results: CellResult[] = []
for (const agent of chosenAgents) {
  const problem = await installed(agent)
  for (const testCase of chosenCases) {
    const version = installations.get(agent)?.version ?? 'not installed'
    const detail = problem ? `${notRun}: ${problem}` : notRun
    results.push({ agent: agent.name, version, mode: 'oneshot', case: testCase.name, passed: false, detail })
  }
}

const build = new GatewayBuild()
const waiting = [...results]
await Promise.all(Array.from({ length: lanes }, runLane))
await build.remove()

const matrix = renderMatrix(chosenAgents, chosenCases, results)
const failed = results.filter(({ passed }) => !passed)
console.log(`\n${matrix}\n\n${results.length - failed.length} of ${results.length} cells hold.`)
await save()
process.exitCode = failed.length > 0 ? 1 : 0

/** Finds or installs the agent; what went wrong, if it did. */
async function installed(agent: Agent): Promise<string | undefined> {
  try {
    installations.set(agent, await (scratch ? installLatest(agent, scratch) : findPinned(agent)))
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

async function runLane(): Promise<void> {
  for (let cell = waiting.shift(); cell && !interrupted.signal.aborted; cell = waiting.shift()) {
    const { agent: agentName, case: caseName } = cell
    const agent = agents.find(({ name }) => name === agentName)
    const testCase = cases.find(({ name }) => name === caseName)
    const installation = agent && installations.get(agent)
    const startedAt = Date.now()
    if (installation && testCase) Object.assign(cell, await runCell(agent, installation, testCase))
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1)
    console.log(`${cell.passed ? 'ok    ' : 'FAILED'} ${agentName} ${caseName} (${seconds} s): ${cell.detail}`)
  }
}

async function runCell(
  agent: Agent,
  installation: Installation,
  testCase: Case,
): Promise<Pick<CellResult, 'passed' | 'detail'>> {
  const stages: Stage[] = []
  const over = new AbortController()
  const signal = AbortSignal.any([AbortSignal.timeout(cellDeadlineMs), interrupted.signal])
  try {
    const detail = await Promise.race([
      testCase.run({
        agent,
        expected: expectations[agent.name],
        async open(script) {
          const stage = await openStage(agent, installation, build, script, signal)
          stages.push(stage)
          return stage
        },
      }),
      giveUp(over.signal),
    ])
    for (const { sandbox } of stages) assert.deepEqual(await sandbox.processes(), [], 'no process is left')
    return { passed: true, detail }
  } catch (error) {
    return { passed: false, detail: messageOf(error) }
  } finally {
    over.abort()
    for (const stage of stages) await stage.close()
  }
}

/** Rejects when even the end of every turn did not end the case; `signal` says that it is not needed any more. */
async function giveUp(signal: AbortSignal): Promise<never> {
  await sleep(cellDeadlineMs + graceMs, undefined, { signal })
  throw new Error('the cell did not end when its time was over')
}

async function save(): Promise<void> {
  const json = `${JSON.stringify(results, null, 2)}\n`
  if (scratch) {
    // The agents are gigabytes, the results are what is wanted.
    for (const { name } of agents) await rm(join(scratch, name), { recursive: true, force: true })
    await writeFile(join(scratch, 'results.json'), json)
    console.log(`Results: ${join(scratch, 'results.json')}`)
  } else if (!options.agent && !options.case && !interrupted.signal.aborted) {
    await writeFile(join(import.meta.dirname, 'results.json'), json)
    await writeFile(join(import.meta.dirname, '../docs/compatibility.md'), renderDocument(agents, cases, results))
  }
}

function choose<T extends { name: string }>(option: string, all: T[], names: string | undefined): T[] {
  if (names === undefined) return all
  return names.split(',').map((name) => {
    const found = all.find((candidate) => candidate.name === name)
    if (!found) throw new Error(`Unknown ${option} "${name}". Known: ${all.map((known) => known.name).join(', ')}`)
    return found
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
