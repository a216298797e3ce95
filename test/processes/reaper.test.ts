import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startTimeOf } from '../../src/processes/process-table.js'
import {
  endOrphans,
  hostIdentity,
  isProcessAlive,
  type LedgerEntry,
  type ProcessIdentity,
  thisProcess,
} from '../../src/processes/reaper.js'
import type { Step } from '../contract/agent-script.js'
import { startFakeTree } from './fake-tree.js'
import { recordingLog } from '../kit/log.js'

describe('endOrphans', () => {
  it('ends an orphaned tree, found by its marker', async () => {
    const run = await startRun([{ descendant: 'own-session' }, { descendant: 'own-session-no-environment' }])
    const before = run.alive()
    const { settled, warnings } = await reap([run.entry])
    expect({ before, after: run.alive(), settled, warnings }).toEqual({
      before: 3,
      after: 0,
      settled: [run.entry],
      warnings: [['orphan.ended', { runId: run.entry.runId, processes: 3 }]],
    })
  })

  it('ends the tools of an agent that has gone', async () => {
    const run = await startRun([{ descendant: 'orphan' }, { descendant: 'own-session' }])
    run.child.kill('SIGKILL')
    const { settled } = await reap([run.entry])
    expect([run.alive(), settled]).toEqual([0, [run.entry]])
  })

  it('does nothing for a run with nothing left alive', async () => {
    const entry = entryOf({ pid: 2 ** 22 + 1, startTime: 1 })
    expect(await reap([entry])).toEqual({ settled: [entry], warnings: [] })
  })

  it("leaves a process alone that has an agent's pid, even one of another run", async () => {
    const stranger = await startRun([])
    const { pid, startTime } = stranger.entry
    const entries = [entryOf({ pid, startTime }), entryOf({ pid, startTime: startTime - 1 }), entryOf({ pid })]
    const { settled } = await reap(entries)
    expect([stranger.alive(), settled]).toEqual([1, entries])
  })

  it('leaves processes alone that are older than the run, such as one that carries its marker by accident', async () => {
    const older = await startRun([])
    const entry = { ...older.entry, startTime: older.entry.startTime + 1 }
    expect([await reap([entry]), older.alive()]).toEqual([{ settled: [entry], warnings: [] }, 1])
  })

  it('ends it if its start time is unknown', async () => {
    const run = await startRun([])
    const entry = { ...run.entry, startTime: 0 }
    expect([(await reap([entry])).settled, run.alive()]).toEqual([[entry], 0])
  })

  it('leaves the runs of other hosts to them, and settles those from before a reboot', async () => {
    const run = await startRun([])
    const elsewhere = { ...run.entry, host: 'another' }
    const before = { ...run.entry, bootId: 'before' }
    const { settled, warnings } = await reap([elsewhere, before])
    expect([settled, warnings, run.alive()]).toEqual([[before], [], 1])
  })
})

describe('isProcessAlive', () => {
  const here = thisProcess()
  it.each<[string, Partial<ProcessIdentity>]>([
    ['alive', {}],
    ['alive', { startTime: 0 }],
    ['alive', { bootId: '' }],
    ['dead', { startTime: here.startTime + 1 }],
    ['dead', { pid: 2 ** 22 + 1 }],
    ['dead', { pid: 2 ** 22 + 1, startTime: 0 }],
    ['dead', { bootId: 'before' }],
    ['elsewhere', { host: 'another' }],
    ['elsewhere', { host: 'another', bootId: 'before', pid: 2 ** 22 + 1 }],
  ])('is %s for this process with %j', (answer, change) => {
    expect(isProcessAlive({ ...here, ...change })).toEqual(answer)
  })

  it('is dead for a zombie', async () => {
    const shell = spawn('/bin/sh', ['-c', 'sleep 0 & echo $!; exec sleep 1000'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => {
      shell.kill('SIGKILL')
    })
    const [pid] = await new Promise<number[]>((resolve) => {
      shell.stdout.once('data', (chunk: Buffer) => resolve([Number(chunk.toString())]))
    })
    await expect.poll(() => isProcessAlive({ ...here, pid: pid ?? 0, startTime: 0 })).toEqual('dead')
  })
})

async function reap(entries: LedgerEntry[]) {
  const log = recordingLog()
  return { settled: await endOrphans(entries, log), warnings: log.warnings }
}

function entryOf({ pid, startTime = 0 }: { pid: number; startTime?: number }): LedgerEntry {
  return { ...hostIdentity(), runId: randomUUID(), ownerId: 'a dead gateway', pid, startTime }
}

/** A fake agent that has taken these steps and keeps running, with its record. */
async function startRun(steps: Step[]): Promise<{ child: ChildProcess; entry: LedgerEntry; alive(): number }> {
  const runId = randomUUID()
  const tree = await startFakeTree(steps, { AETHEEL_RUN_ID: runId })
  const pid = tree.child.pid ?? 0
  return { ...tree, entry: { ...entryOf({ pid, startTime: startTimeOf(pid) }), runId } }
}
