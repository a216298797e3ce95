import { defineConfig } from 'vitest/config'

/** For the test of `run.ts`: files that fail the first time. */
export default defineConfig({
  test: { include: ['test/suite/flaky/{one,two,three,four}.ts'], reporters: ['./test/suite/reporter.ts'] },
})
