import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { gitObstacle } from '../../../src/backends/engine/untrusted-git.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

it.each([
  ['filter.x.clean', 'touch ran'],
  ['filter.x.smudge', 'touch ran'],
  ['filter.x.process', 'touch ran'],
  ['diff.external', 'touch ran'],
  ['diff.x.textconv', 'touch ran'],
  ['diff.x.command', 'touch ran'],
  ['merge.x.driver', 'touch ran'],
  ['core.sshcommand', 'touch ran'],
  ['core.pager', 'touch ran'],
  ['core.editor', 'touch ran'],
  ['core.askpass', 'touch ran'],
  ['core.gitproxy', 'touch ran'],
  ['core.alternaterefscommand', 'touch ran'],
  ['core.attributesfile', '/attributes'],
  ['core.worktree', '/'],
  ['credential.helper', '!touch ran'],
  ['gpg.program', 'touch'],
  ['alias.st', '!touch ran'],
  ['pager.status', 'touch ran'],
  ['submodule.x.update', '!touch ran'],
  ['remote.origin.uploadpack', 'touch ran'],
  ['remote.origin.vcs', 'ext'],
  ['branch.main.mergeoptions', '--strategy=x'],
  ['protocol.ext.allow', 'always'],
  ['include.path', '../settings'],
  ['includeif.gitdir:/.path', '../settings'],
  ['a.setting.of.tomorrow', 'x'],
])('a repository that sets %s is not let in', async (key, value) => {
  const { look, git, directory } = setup()
  git('config', key, value)
  expect(await look()).toBe(refusal(join(directory, '.git/config'), key))
})

it('a repository as git makes, clones and uses it is let in', async () => {
  const { look, git, directory } = setup()
  const settings = [
    ['remote.origin.url', 'https://example.org/a.b/c.git'],
    ['remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*'],
    ['branch.feature/1.2.remote', 'origin'],
    ['branch.feature/1.2.merge', 'refs/heads/feature/1.2'],
    ['submodule.libs/one.url', 'https://example.org/one.git'],
    ['user.name', 'A line\nand [filter "x"]\n\tclean = another'],
    // Both are overridden from outside.
    ['core.hooksPath', '.husky'],
    ['core.fsmonitor', 'touch ran'],
  ] as const
  for (const [key, value] of settings) git('config', key, value)
  expect([await look(), await look(join(directory, 'src'))]).toEqual([undefined, undefined])
})

it('a directory without a repository is let in, even without git', async () => {
  const { directory } = setup()
  rmSync(join(directory, '.git'), { recursive: true })
  expect(await gitObstacle(directory, { PATH: '' }, new AbortController().signal)).toBe(undefined)
})

it.each<[string, (directory: string) => string]>([
  ['of a worktree', (directory) => write(directory, '.git/config.worktree')],
  ['of a submodule', (directory) => repository(directory, '.git/modules/libs/one')],
  ['of a submodule in a submodule', (directory) => repository(directory, '.git/modules/libs/modules/one')],
  ['of a repository further down', (directory) => repository(directory, 'libs/one/.git')],
  ['of a repository that has no such name', (directory) => repository(directory, 'libs/one.git')],
  ['of a repository that a file names', (directory) => named(directory, `gitdir: ../elsewhere\n`)],
  ['of a repository that a link names', (directory) => linked(directory)],
  ['that a repository shares with another', (directory) => shared(directory)],
  ['of a repository above the directory', (directory) => above(directory)],
])('the settings %s are looked at', async (_, make) => {
  const { look, directory } = setup()
  const file = make(directory)
  expect(await look()).toBe(refusal(file, 'filter.x.clean'))
})

it('a submodule may have its files inside the project', async () => {
  const { look, directory } = setup()
  mkdirSync(join(directory, 'libs/one'), { recursive: true })
  repository(directory, '.git/modules/one', '[core]\n\tworktree = ../../../libs/one\n')
  expect(await look()).toBe(undefined)
})

it('settings that git cannot read are an obstacle', async () => {
  const { look, directory } = setup()
  const file = write(directory, '.git/config', '[filter "x\n')
  expect(await look()).toBe(
    `The project is untrusted, and its git settings could not be checked: git cannot read ${file}. Fix that, or trust the project.`,
  )
})

it('a git that takes no settings from outside is an obstacle', async () => {
  const { directory } = setup()
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'git'), '#!/bin/sh\necho git version 2.30.2\n', { mode: 0o755 })
  expect(await gitObstacle(directory, { PATH: `${bin}:/usr/bin:/bin` }, new AbortController().signal)).toBe(
    'The project is untrusted, and its git settings cannot be checked. Install git 2.31.0 or newer.',
  )
})

it('what cannot be inspected in time is an obstacle', async () => {
  const { look, directory } = setup()
  expect(await look(directory, AbortSignal.abort())).toMatch(
    /^The project is untrusted, and its git settings could not/,
  )
})

const EVIL = '[filter "x"]\n\tclean = touch ran\n'

function setup() {
  const top = temporaryDirectory()
  const directory = join(top, 'project')
  mkdirSync(join(directory, 'src'), { recursive: true })
  const environment = { PATH: process.env['PATH'] ?? '', HOME: top }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: directory, env: environment })
  git('init', '-q')
  const look = (path = directory, signal = new AbortController().signal) => gitObstacle(path, environment, signal)
  return { directory, git, look }
}

function refusal(file: string, key: string): string {
  return `The project is untrusted, and ${file} sets ${key}, which can make git run a program or leave the project. Remove the setting, or trust the project.`
}

function write(directory: string, name: string, text = EVIL): string {
  const file = join(directory, name)
  appendFileSync(file, text)
  return file
}

/** A repository at this path, and the file with its settings. */
function repository(directory: string, name: string, text = EVIL): string {
  for (const part of ['objects', 'refs']) mkdirSync(join(directory, name, part), { recursive: true })
  writeFileSync(join(directory, name, 'HEAD'), 'ref: refs/heads/main\n')
  return write(directory, join(name, 'config'), text)
}

function named(directory: string, text: string): string {
  const file = repository(directory, '../elsewhere')
  mkdirSync(join(directory, 'libs'))
  writeFileSync(join(directory, 'libs/.git'), text.replace('..', '../..'))
  return file
}

function linked(directory: string): string {
  const file = repository(directory, '../elsewhere')
  symlinkSync('../../elsewhere', join(directory, 'src/.git'))
  return file
}

function shared(directory: string): string {
  const file = repository(directory, '../elsewhere')
  writeFileSync(join(directory, '.git/commondir'), '../../elsewhere\n')
  return file
}

function above(directory: string): string {
  const file = repository(directory, '../.git')
  // Without it, it is not a repository, and git continues to the next one.
  rmSync(join(directory, '.git/HEAD'))
  return file
}
