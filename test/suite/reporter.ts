// Reports to `run.ts` which files are slow, which failed, and how.

import { writeFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** The file that the report is written to. */
export const REPORT_VARIABLE = 'AETHEEL_TEST_REPORT'

export interface SuiteReport {
  failedFiles: FailedFile[]
  /** Errors that belong to no test. */
  unhandledErrors: number
}

export interface FailedFile {
  path: string
  /** Empty if the file could not be loaded. */
  tests: string[]
  output: string
}

const SLOWEST_FILES = 20

export default class SuiteReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    console.log(`\nSlowest files\n${slowest(modules).join('\n')}\n`)
    const reportFile = process.env[REPORT_VARIABLE]
    if (reportFile === undefined) return
    const failedFiles = modules.filter((module) => !module.ok()).map(failedFile)
    const report: SuiteReport = { failedFiles, unhandledErrors: unhandledErrors.length }
    writeFileSync(reportFile, JSON.stringify(report))
  }
}

function slowest(modules: readonly TestModule[]): string[] {
  return modules
    .map((module) => ({ path: module.relativeModuleId, seconds: module.diagnostic().duration / 1000 }))
    .toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, SLOWEST_FILES)
    .map(({ path, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${path}`)
}

function failedFile(module: TestModule): FailedFile {
  const failed = [...module.children.allTests('failed')]
  const suites = [...module.children.allSuites()]
  const errors = [module, ...suites].flatMap((part) => part.errors())
  const sections = [
    ...errors.map((error) => textOf(error)),
    ...failed.map((test) => [test.fullName, ...(test.result().errors ?? []).map(textOf)].join('\n\n')),
  ]
  return {
    path: module.relativeModuleId,
    tests: failed.map((test) => test.fullName),
    output: `${stripVTControlCharacters(sections.join('\n\n'))}\n`,
  }
}

function textOf(error: SerializedError): string {
  return [error.stack ?? error.message, error['diff']].filter((part) => typeof part === 'string').join('\n\n')
}
