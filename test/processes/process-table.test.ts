import { spawn } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findProcess, type ProcessEntry, readProcessTable, startTimeOf } from '../../src/processes/process-table.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

// Anything but Linux asks `ps`, which answers on Linux too.
const sources = ['linux', 'freebsd'] as const

describe.each(sources)('readProcessTable on %s', (platform) => {
  const find = (pid: number | undefined) => readProcessTable(platform).find((entry) => entry.pid === pid)

  it('shows this process below its parent', () => {
    expect(find(process.pid)).toMatchObject({ pid: process.pid, parentPid: process.ppid, isZombie: false })
  })

  it('shows the same start time each time, and one not before it for a child', async () => {
    const child = await start('sleep', ['1000'])
    const [first = 0, second, later = 0] = [process.pid, process.pid, child.pid].map((pid) => find(pid)?.startTime)
    expect([first > 0, second, later >= first]).toEqual([true, first, true])
  })

  it.each(['agent', 'an agent', 'agent) S 1 1 (x', '((', 'a )\nb'])(
    'shows parent, group, session and environment of a process with the name %j',
    async (name) => {
      const child = await start(name, ['1000'], { MARK: 'value-1', OTHER: 'x' })
      expect(seen(find(child.pid))).toEqual({
        parentPid: process.pid,
        groupId: child.pid,
        leadsSession: true,
        isZombie: false,
        variables: [true, true, false, false, false],
      })
    },
  )

  it('shows zombies', async () => {
    const shell = await start('sh', ['-c', 'sleep 0 & exec sleep 1000'])
    await expect
      .poll(() => readProcessTable(platform).find((entry) => entry.parentPid === shell.pid))
      .toMatchObject({
        isZombie: true,
      })
  })

  it('does not show processes that are gone', async () => {
    const child = await start('sleep', ['1000'])
    const ended = new Promise((resolve) => {
      child.once('exit', resolve)
    })
    child.kill('SIGKILL')
    await ended
    expect(find(child.pid)).toEqual(undefined)
  })
})

describe.each(sources)('findProcess on %s', (platform) => {
  it('shows what the table shows of a process, and nothing of a missing one', () => {
    const listed = readProcessTable(platform).find((entry) => entry.pid === process.pid)
    const found = [process.pid, 2 ** 22 + 1].map((pid) => findProcess(pid, platform))
    expect(found.map((entry) => entry && { ...entry, hasVariable: undefined })).toEqual([
      { ...listed, hasVariable: undefined },
      undefined,
    ])
  })

  it('shows nothing of a zombie', async () => {
    const shell = await start('sh', ['-c', 'sleep 0 & exec sleep 1000'])
    const child = () => readProcessTable('linux').find((entry) => entry.parentPid === shell.pid)
    await expect.poll(() => child()?.isZombie).toEqual(true)
    expect(findProcess(child()?.pid ?? 0, platform)).toEqual(undefined)
  })
})

describe('startTimeOf', () => {
  it('is what the table shows, and 0 for a missing process', () => {
    const listed = readProcessTable('linux').find((entry) => entry.pid === process.pid)?.startTime
    expect([startTimeOf(process.pid, 'linux'), startTimeOf(2 ** 22 + 1, 'linux')]).toEqual([listed, 0])
  })
})

function seen(entry: ProcessEntry | undefined) {
  if (!entry) return undefined
  const { parentPid, groupId, leadsSession, isZombie } = entry
  const assignments = ['MARK=value-1', 'OTHER=x', 'MARK=value', 'ARK=value-1', 'MARK=value-12']
  const variables = assignments.map((assignment) => entry.hasVariable(assignment))
  return { parentPid, groupId, leadsSession, isZombie, variables }
}

/** A process of that name in its own group. */
async function start(name: string, args: string[], env: Record<string, string> = {}) {
  const executable = join(temporaryDirectory(), name)
  symlinkSync(name === 'sh' ? '/bin/sh' : '/bin/sleep', executable)
  const child = spawn(executable, args, { stdio: 'ignore', detached: true, env: { PATH: process.env['PATH'], ...env } })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  return child
}
