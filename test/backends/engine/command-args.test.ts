import { expect, it } from 'vitest'
import { namesOption, valueOf, withoutOptions } from '../../../src/backends/engine/command-args.js'

const OPTIONS = [
  { names: ['-p', '--print'], takesValue: false },
  { names: ['-o', '--output-format'], takesValue: true },
]

it.each([
  [[], []],
  [
    ['--name', 'x'],
    ['--name', 'x'],
  ],
  [['-p', 'x', '--print'], ['x']],
  [
    ['a', '--output-format', 'json', 'b'],
    ['a', 'b'],
  ],
  [['--output-format=json', 'b'], ['b']],
  [['-o', '--name'], ['--name']],
  [['-o'], []],
  [
    ['--output-formatted', '-po', '--name=-p'],
    ['--output-formatted', '-po', '--name=-p'],
  ],
])('of %j are left %j', (args, left) => {
  expect(withoutOptions(args, OPTIONS)).toEqual(left)
})

it.each([
  [['--name'], '--name', true],
  [['--name=x'], '--name', true],
  [['x', '--names'], '--name', false],
])('%j names %s: %s', (args, name, isNamed) => {
  expect(namesOption(args, [name])).toBe(isNamed)
})

it.each([
  [['--name', 'x', '--name', 'y'], 'x'],
  [['a', '--name=x=y'], 'x=y'],
  [['--name'], undefined],
  [['name'], undefined],
])('in %j the value is %s', (args, value) => {
  expect(valueOf(args, ['--name'])).toBe(value)
})
