// ARCHITECTURE.md leads to the code: every function and path it names is there.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const PROJECT = join(import.meta.dirname, '..')
const PAGE = readFileSync(join(PROJECT, 'ARCHITECTURE.md'), 'utf8')

test('the functions of the walk are where ARCHITECTURE.md says', () => {
  const walk = PAGE.slice(PAGE.indexOf('## One message'), PAGE.indexOf('## Where is'))
  const named = [...walk.matchAll(/`(\w+)`\s+in\s+`(src\/[\w/.-]+\.ts)`/g)].map(([, name = '', file = '']) => ({
    name,
    file,
  }))
  const missing = named.filter(({ name, file }) => {
    const code = readFileSync(join(PROJECT, file), 'utf8')
    return !new RegExp(`^(?:export (?:async )?function\\*?|export class|export const|  async) ${name}\\b`, 'm').test(
      code,
    )
  })
  expect([named.length > 8, missing]).toEqual([true, []])
})

test('its stages are those of a turn, in their order', () => {
  const [, stages = ''] =
    /const TURN[^=]*= \[([^\]]*)\]/.exec(readFileSync(join(PROJECT, 'src/turns/plan.ts'), 'utf8')) ?? []
  const [, told = ''] = /turn: ((?:`\w+`,?\s+)+)each in/.exec(PAGE) ?? []
  expect([...told.matchAll(/\w+/g)].map(String)).toEqual([...stages.matchAll(/\w+/g)].map(String))
})

test('every path it names exists', () => {
  const paths = [...PAGE.matchAll(/`((?:src|test|web|conformance|bench|docs)\/[\w/.-]*)`/g)].map(
    ([, path = '']) => path,
  )
  expect(paths.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([])
})
