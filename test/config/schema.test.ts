import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { configJsonSchema, SETTING_NAMES } from '../../src/config/schema.js'
import { VARIABLES } from '../../src/config/variables.js'

it('ships the JSON Schema of the code; "npm run schema" rewrites it', () => {
  const shipped: unknown = JSON.parse(readFileSync(new URL('../../aetheel.schema.json', import.meta.url), 'utf8'))
  expect(shipped).toEqual(configJsonSchema())
})

it('describes every setting for editors', () => {
  const { properties } = configJsonSchema() as { properties: Record<string, { description?: string }> }
  const silent = Object.entries(properties).filter(([, { description }]) => description === undefined)
  expect(silent).toEqual([])
})

it('is fully documented', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  const names = [...SETTING_NAMES, ...Object.values(VARIABLES).map(({ name }) => name)]
  expect(names.filter((name) => !page.includes(`| \`${name}\` `))).toEqual([])
})
