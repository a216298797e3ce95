import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.js'

/** Tests that need a browser or pods, and tests that take long. */
export const LONG_TESTS = [
  'test/suite/run.test.ts',
  'test/browser/**/*.test.ts',
  'test/kubernetes/**/*.test.ts',
  'test/cli/commands/pods.test.ts',
  'test/crash/*.test.ts',
  'test/**/kill.test.ts',
  'test/backends/**/contract.test.ts',
  'test/backends/opencode/server/reconnect.test.ts',
  'test/channels/discord/soak.test.ts',
  'test/**/full-disk.test.ts',
  'test/turns/queue-properties.test.ts',
  'test/schedule/month.test.ts',
  'test/streams/stream-hub-interleavings.test.ts',
]

export const SUITE_REPORTERS = ['default', './test/suite/reporter.ts']

/** Run directly, these files do less. */
const SIZES = {
  CONTRACT_COMBINATIONS: 'all',
  CRASH_KILLS: '50',
  LIVE_KILLS: '200',
  SCHEDULE_SEASONS: 'all',
  SOAK_CHANNELS: '200',
  SOAK_MESSAGES: '2000',
  STREAM_INTERLEAVINGS: '10000',
}

export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...base.test, reporters: SUITE_REPORTERS, include: LONG_TESTS, env: { ...base.test?.env, ...SIZES } },
})
