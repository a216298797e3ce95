import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, type TestContext } from 'vitest'
import { endLivingProcesses } from './living-processes.js'

/** An empty directory, by its real path, that is removed when the test ends. A concurrent test passes its own hook. */
export function temporaryDirectory(onFinished: TestContext['onTestFinished'] = onTestFinished): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-test-')))
  // A process that was killed a moment ago may still hold a file open.
  onFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

/** As `temporaryDirectory`, for processes: those that still run in it, or have it in their environment, are killed first. */
export function processDirectory(onFinished: TestContext['onTestFinished'] = onTestFinished): string {
  const directory = temporaryDirectory(onFinished)
  onFinished(() => endLivingProcesses(directory))
  return directory
}
