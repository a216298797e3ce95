import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import base from '../vitest.config.js'

/** What needs a browser or pods, and what is long by its nature. */
export const LONG_TESTS = [
  'test/browser/**/*.test.ts',
  'test/kubernetes/**/*.test.ts',
  'test/commands/pods.test.ts',
  'test/crash/*-kills.test.ts',
  'test/**/kill.test.ts',
  'test/backends/**/contract.test.ts',
  'test/backends/opencode-server/reconnect.test.ts',
  'test/discord/soak.test.ts',
  'test/queue/queue-properties.test.ts',
  'test/schedule/month.test.ts',
  'test/streams/stream-hub-interleavings.test.ts',
]

export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: { ...base.test, include: LONG_TESTS },
})
