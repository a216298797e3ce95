import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Set by `test/suite/run.ts`, which gives the tests their own mount namespace if run by root. */
export const MAY_MOUNT = process.env['AETHEEL_TEST_MOUNTS'] === 'allowed'

/** A directory on a disk of 8 MB; both are gone when the test ends. */
export function mountSmallDisk(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-disk-')))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', directory])
  onTestFinished(() => {
    execFileSync('umount', ['-l', directory])
    rmdirSync(directory)
  })
  return directory
}
