import { type Browser, chromium } from 'playwright-core'
import { afterAll, describe } from 'vitest'
import { findExecutable } from '../../src/core/paths.js'

const executablePath = ['chromium', 'chromium-browser', 'google-chrome']
  .map((name) => findExecutable(name, process.env['PATH'] ?? ''))
  .find((path) => path !== undefined)

/** Under load, a browser may be slow. */
const LONGEST_TEST_MS = 240_000

const MISSING = 'The dashboard tests need Chromium in PATH (Debian: apt-get install chromium).'

/** A suite with its own browser; skipped if there is none, unless AETHEEL_TEST_BROWSER=required. */
export function describeBrowser(title: string, suite: (browser: () => Promise<Browser>) => void): void {
  if (executablePath === undefined && process.env['AETHEEL_TEST_BROWSER'] === 'required') throw new Error(MISSING)
  describe.skipIf(executablePath === undefined)(`${title}, in Chromium`, { timeout: LONGEST_TEST_MS }, () => {
    let opened: Promise<Browser> | undefined
    afterAll(async () => {
      await (await opened)?.close()
    })
    suite(() => (opened ??= launch()))
  })
}

function launch(): Promise<Browser> {
  // Small machines have little shared memory, and Chromium's sandbox does not work in a container.
  return chromium.launch({ executablePath: executablePath ?? '', args: ['--disable-dev-shm-usage', '--no-sandbox'] })
}
