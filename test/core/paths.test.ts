import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { findExecutable } from '../../src/core/paths.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describe('findExecutable', () => {
  let directory = ''
  beforeEach(() => {
    directory = temporaryDirectory()
    for (const name of ['first', 'second']) mkdirSync(join(directory, name))
  })

  const make = (path: string, mode = 0o755) => {
    const file = join(directory, path)
    writeFileSync(file, '')
    chmodSync(file, mode)
    return file
  }
  const find = (command: string, ...directories: string[]) =>
    findExecutable(command, directories.map((name) => join(directory, name)).join(':'))

  it('takes the first of that name in the search path', () => {
    const [first] = [make('first/agent'), make('second/agent')]
    expect(find('agent', 'first', 'second')).toEqual(first)
  })

  it('skips what is not an executable file', () => {
    make('first/agent', 0o644)
    mkdirSync(join(directory, 'agent'))
    const second = make('second/agent')
    expect(find('agent', 'nowhere', '', 'first', 'second')).toEqual(second)
  })

  it('follows links, unless they lead nowhere', () => {
    symlinkSync('nowhere', join(directory, 'first', 'agent'))
    symlinkSync(make('real'), join(directory, 'second', 'agent'))
    expect(find('agent', 'first', 'second')).toEqual(join(directory, 'second', 'agent'))
  })

  it('takes a path as it is, made absolute', () => {
    const file = make('first/agent')
    expect([find(file), find(relative('.', file))]).toEqual([file, file])
  })

  it('looks nowhere but in the search path for a name, and never in the working directory', () => {
    const searchPaths = ['', ':', '.', 'node_modules/.bin', ':.:']
    expect(searchPaths.map((searchPath) => findExecutable('tsx', searchPath))).toEqual(searchPaths.map(() => undefined))
  })

  it('finds nothing for a missing path, for a directory and for an empty name', () => {
    const commands = ['/nowhere/agent', directory, '', './', '/']
    expect(commands.map((command) => find(command, 'first'))).toEqual(commands.map(() => undefined))
  })
})
