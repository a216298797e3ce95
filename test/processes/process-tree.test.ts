import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { describe, expect, it, type TestContext } from 'vitest'
import { type ProcessEntry, startTimeOf } from '../../src/processes/process-table.js'
import { collectTree, endLeftovers, endTree, NO_PID, type RunRoot } from '../../src/processes/process-tree.js'
import type { Step } from '../contract/agent-script.js'
import { startFakeTree } from './fake-tree.js'
import { until } from '../kit/waiting.js'

describe.concurrent('endTree', () => {
  it('ends a tree with everything that hides from it, and nothing else', async (test) => {
    const bystander = await startTree(test, [{ descendant: 'own-session' }])
    const tree = await startTree(test, [
      { descendant: 'child' },
      { descendant: 'own-session' },
      { descendant: 'orphan' },
      { descendant: 'own-session-no-environment' },
    ])
    const before = [tree.alive(), bystander.alive()]
    await endTree(tree.root, 'SIGTERM')
    expect([before, [tree.alive(), bystander.alive()]]).toEqual([
      [5, 2],
      [0, 2],
    ])
  })

  it.for(['SIGINT', 'SIGTERM'] as const)('lets the root exit on %s', async (signal, test) => {
    const tree = await startTree(test, [{ onStop: [{ exit: 42 }] }])
    await endTree(tree.root, signal)
    const alive = tree.alive()
    await until(() => tree.root.hasExited())
    expect([tree.child.exitCode, alive]).toEqual([42, 0])
  })

  it('continues with SIGTERM if the first signal is ignored', async (test) => {
    const tree = await startTree(test, [{ ignoreSignals: ['SIGINT'] }])
    await endTree(tree.root, 'SIGINT')
    const alive = tree.alive()
    await until(() => tree.root.hasExited())
    expect([tree.child.signalCode, alive]).toEqual(['SIGTERM', 0])
  })

  it('continues with SIGKILL if every signal is ignored', async (test) => {
    const tree = await startTree(test, [{ ignoreSignals: ['SIGINT', 'SIGTERM'] }])
    await endTree(tree.root, 'SIGTERM')
    const alive = tree.alive()
    await until(() => tree.root.hasExited())
    expect([tree.child.signalCode, alive]).toEqual(['SIGKILL', 0])
  })

  it('does nothing when everything has ended', async (test) => {
    const tree = await startTree(test, [])
    await endTree(tree.root, 'SIGTERM')
    await endTree(tree.root, 'SIGTERM')
    expect(tree.alive()).toEqual(0)
  })
})

describe.concurrent('endLeftovers', () => {
  it('ends what an agent left behind when it exited', async (test) => {
    const tree = await startTree(test, [{ descendant: 'orphan' }, { descendant: 'own-session' }])
    tree.child.kill('SIGKILL')
    await until(() => tree.root.hasExited())
    const before = tree.alive()
    await endLeftovers(tree.root)
    expect([before, tree.alive()]).toEqual([2, 0])
  })
})

describe('collectTree', () => {
  const marker = 'RUN=1'
  const entry = (pid: number, fields: Partial<ProcessEntry> & { isMarked?: boolean } = {}): ProcessEntry => ({
    pid,
    parentPid: 1,
    groupId: pid,
    leadsSession: false,
    startTime: 7,
    isZombie: false,
    hasVariable: (assignment) => fields.isMarked === true && assignment === marker,
    ...fields,
  })
  const collect = (table: ProcessEntry[], hasExited = false) =>
    collectTree({ pid: 100, startTime: 7, marker, hasExited: () => hasExited }, table).map(({ pid }) => pid)

  it('finds descendants listed before their parents', () => {
    const table = [entry(103, { parentPid: 102 }), entry(102, { parentPid: 101 }), entry(101, { parentPid: 100 })]
    expect(collect([...table, entry(100), entry(99), entry(104, { parentPid: 99 })])).toEqual([103, 102, 101, 100])
  })

  it('finds those with the marker, their children and the whole group', () => {
    const table = [
      entry(100),
      entry(200, { isMarked: true }),
      entry(201, { parentPid: 200 }),
      entry(300, { groupId: 100 }),
      entry(400),
    ]
    expect(collect(table)).toEqual([100, 200, 201, 300])
  })

  it('looks through zombies, and leaves them out', () => {
    expect(
      collect([entry(100), entry(101, { parentPid: 100, isZombie: true }), entry(102, { parentPid: 101 })]),
    ).toEqual([100, 102])
  })

  it('leaves a stranger alone that has the pid of an exited agent', () => {
    expect(collect([entry(100, { groupId: 99 }), entry(101, { parentPid: 100 })], true)).toEqual([])
  })

  it('leaves out processes older than the run, such as one that carries a marker by accident', () => {
    expect(collect([entry(100), entry(200, { startTime: 6, isMarked: true }), entry(201, { parentPid: 200 })])).toEqual(
      [100],
    )
  })

  it('uses only the marker for a run without its own process, whatever groups there are', () => {
    const table = [entry(2, { groupId: 0 }), entry(3, { groupId: -1 }), entry(200, { isMarked: true })]
    const root = { startTime: 0, marker, hasExited: () => true }
    const found = [NO_PID, 0].map((pid) => collectTree({ ...root, pid }, table).map((entry) => entry.pid))
    expect(found).toEqual([[200], [200]])
  })

  it('never names this process', () => {
    expect(collect([entry(process.pid, { isMarked: true }), entry(100)])).toEqual([100])
  })
})

/** A fake agent that has taken these steps and keeps running, as the root of a run. */
async function startTree(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  steps: Step[],
): Promise<{ child: ChildProcess; root: RunRoot; alive(): number }> {
  const runId = randomUUID()
  const tree = await startFakeTree(steps, { TEST_RUN: runId }, onTestFinished)
  const { child } = tree
  return {
    ...tree,
    root: {
      pid: child.pid ?? 0,
      startTime: startTimeOf(child.pid ?? 0),
      marker: `TEST_RUN=${runId}`,
      hasExited: () => child.exitCode !== null || child.signalCode !== null,
    },
  }
}
