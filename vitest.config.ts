import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import LongestFirst from './test/suite/longest-first.js'

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.{ts,tsx}'],
    globalSetup: ['test/kit/build-setup.ts', 'test/kit/postgres-setup.ts', 'test/kit/store-setup.ts'],
    // Far more than anything needs that works, even on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // People see their own time.
    env: { TZ: 'UTC' },
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // Many tests only wait, for processes and for time-outs.
    maxWorkers: availableParallelism() + 4,
    // No module keeps state of its own, so that each worker can load them once for all its files.
    isolate: false,
    sequence: { sequencer: LongestFirst },
  },
})
