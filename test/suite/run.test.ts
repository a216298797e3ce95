import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'

const PROJECT = join(import.meta.dirname, '../..')
const KEPT = join(PROJECT, 'test-results', 'test-suite-flaky-one.ts.txt')

describe('a suite', () => {
  it('passes if its file passes when rerun, and reports it as flaky', () => {
    onTestFinished(() => rmSync(KEPT))
    expect([...run(['flaky/one']), readFileSync(KEPT, 'utf8')]).toEqual([
      0,
      ['flaky: test/suite/flaky/one.ts passes'],
      expect.stringContaining('expected false to be true'),
    ])
  })

  it('fails if its file fails again', () => {
    expect([...run(['flaky/one'], 'never'), existsSync(KEPT)]).toEqual([1, [], false])
  })

  it('fails if more than three files would be flaky', () => {
    expect(run([])).toEqual([1, []])
  })
})

function run(filters: string[], passes = 'later'): [exitCode: number | null, flaky: string[]] {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-suite-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const { status, stdout } = spawnSync('npx', ['tsx', 'test/suite/run.ts', 'flaky', ...filters], {
    cwd: PROJECT,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SUITE_DIRECTORY: directory, SUITE_PASSES: passes },
  })
  return [status, stdout.split('\n').filter((line) => line.startsWith('flaky: '))]
}
