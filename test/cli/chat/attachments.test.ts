import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { attachmentsIn, mentionsOf } from '../../../src/cli/chat/attachments.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

function setup() {
  const directory = temporaryDirectory(onTestFinished)
  const project = join(directory, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'inside.ts'), 'x')
  writeFileSync(join(directory, 'plot.png'), '123')
  writeFileSync(join(directory, 'my plan.txt'), '')
  return { directory, project }
}

it('attaches the files that are named, there, and not in the project', () => {
  const { directory, project } = setup()
  const text = `@${directory}/plot.png, (@../plot.png) @"${directory}/my plan.txt" @inside.ts @/no/such @${directory} ${directory}/plot.png a@b.c`
  expect(attachmentsIn(text, project)).toEqual([
    { path: join(directory, 'plot.png'), name: 'plot.png', bytes: 3 },
    { path: join(directory, 'my plan.txt'), name: 'my plan.txt', bytes: 0 },
  ])
})

it('takes a paste for files only if it is nothing but paths of files', () => {
  const { directory } = setup()
  const [plot, plan] = [`${directory}/plot.png`, `${directory}/my plan.txt`]
  const pastes = [
    plot,
    `'${plan}'`,
    `${plan.replace(' ', '\\ ')} ${plot}`,
    plan,
    `file://${plot}`,
    `${plot} here`,
    directory,
    'plot.png',
  ]
  expect(pastes.map(mentionsOf)).toEqual([
    ...[`@${plot}`, `@"${plan}"`, `@"${plan}" @${plot}`, `@"${plan}"`, `@${plot}`],
    ...[undefined, undefined, undefined],
  ])
})
