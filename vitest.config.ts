import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/build-setup.ts', 'test/postgres-setup.ts'],
    testTimeout: 60_000,
    maxWorkers: '100%',
  },
})
