/**
 * Runs a suite: `tsx test/suite/run.ts main|long [arguments of vitest run]`.
 *
 * A file that fails is rerun once, on its own. If it then passes, so does the suite, with a line `flaky: <file> <test>`; the
 * failure is kept in `test-results/`. More than a few such files still fail the suite.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FailedFile, REPORT_VARIABLE, type SuiteReport } from './reporter.js'

const MOST_FLAKY_FILES = 3
const PROJECT = join(import.meta.dirname, '../..')
const VITEST = join(PROJECT, 'node_modules/vitest/vitest.mjs')
const RESULTS = join(PROJECT, 'test-results')
/** Only the tests see what they mount, and it disappears with them. */
const MAY_UNSHARE = process.platform === 'linux' && process.getuid?.() === 0

const [suite = '', ...vitestArguments] = process.argv.slice(2)
const startedAt = performance.now()
process.exitCode = await runSuite()
console.log(`Suite ${suite}: ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)

async function runSuite(): Promise<number> {
  const first = await vitest(vitestArguments)
  if (first.exitCode === 0) return 0
  const { failedFiles = [], unhandledErrors = 0 } = first.report ?? {}
  if (failedFiles.length === 0 || failedFiles.length > MOST_FLAKY_FILES || unhandledErrors > 0) return first.exitCode

  let exitCode = 0
  for (const file of failedFiles) {
    console.log(`\nRerunning: ${file.path}`)
    const second = await vitest([file.path])
    if (second.exitCode === 0) reportFlaky(file)
    else exitCode = second.exitCode
  }
  return exitCode
}

function reportFlaky({ path, tests, output }: FailedFile): void {
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(join(RESULTS, `${path.replaceAll('/', '-')}.txt`), output)
  for (const test of tests.length > 0 ? tests : ['(not loaded)']) console.log(`flaky: ${path} ${test}`)
}

async function vitest(args: string[]): Promise<{ exitCode: number; report: SuiteReport | undefined }> {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-suite-'))
  const reportFile = join(directory, 'report.json')
  const command = [process.execPath, VITEST, 'run', '--config', `test/suite/${suite}.config.ts`, ...args]
  const [program = '', ...programArguments] = MAY_UNSHARE ? ['unshare', '--mount', ...command] : command
  const child = spawn(program, programArguments, {
    cwd: PROJECT,
    stdio: 'inherit',
    env: { ...process.env, [REPORT_VARIABLE]: reportFile, ...(MAY_UNSHARE && { AETHEEL_TEST_MOUNTS: 'allowed' }) },
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  const report = readReport(reportFile)
  rmSync(directory, { recursive: true })
  return { exitCode: code ?? 1, report }
}

/** Undefined if the run did not get that far. */
function readReport(file: string): SuiteReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as SuiteReport
  } catch {
    return undefined
  }
}
