import { defineConfig } from 'vitest/config'

/** For the test of `run.ts`: files that fail when they are run first. */
export default defineConfig({
  test: { include: ['test/suite/flaky/{one,two,three,four}.ts'], reporters: ['./test/suite/reporter.ts'] },
})
