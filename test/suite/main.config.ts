import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import base from '../../vitest.config.js'
import { LONG_TESTS, SUITE_REPORTERS } from './long.config.js'

export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...base.test, reporters: SUITE_REPORTERS, exclude: [...configDefaults.exclude, ...LONG_TESTS] },
})
