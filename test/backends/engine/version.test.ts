import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { problemsOfVersion, readVersion, type VersionKnowledge } from '../../../src/backends/engine/version.js'
import { createFakeBackend, createStage } from '../fake-cli.js'

const KNOWLEDGE: VersionKnowledge = {
  oldestKnown: '2.1.97',
  holes: [
    { below: '1.0.111', what: 'CVE-1' },
    { below: '2.0.65', what: 'CVE-2' },
  ],
}

const OLD = (version: string) => `Version ${version} is older than 2.1.97, the oldest version known to work.`
const HOLE = (version: string, what: string, below: string) =>
  `Version ${version} has a known security hole (${what}): update to ${below} or newer.`

describe('a version', () => {
  it.each<[version: string, problems: string[]]>([
    ['2.1.97', []],
    ['2.1.197', []],
    ['2.2.0', []],
    ['10.0.0', []],
    ['2.1.96', [OLD('2.1.96')]],
    ['2.1.9', [OLD('2.1.9')]],
    ['2.0.65', [OLD('2.0.65')]],
    ['2.0.64', [HOLE('2.0.64', 'CVE-2', '2.0.65'), OLD('2.0.64')]],
    ['1.0.99', [HOLE('1.0.99', 'CVE-1', '1.0.111'), HOLE('1.0.99', 'CVE-2', '2.0.65'), OLD('1.0.99')]],
  ])('%s has the problems %j', (version, problems) => {
    expect(problemsOfVersion(version, KNOWLEDGE)).toEqual(problems)
  })

  it('that could not be read is a problem', () => {
    expect(problemsOfVersion(undefined, KNOWLEDGE)).toEqual([
      'Its version could not be read: `--version` printed none.',
    ])
  })
})

describe('what --version prints', () => {
  it.each([
    ['echo "2.1.197 (Claude Code)"', '2.1.197'],
    ['echo "codex-cli 0.166.0"', '0.166.0'],
    ['echo "Warning: no terminal" >&2; echo 0.61.0', '0.61.0'],
    ['echo 0.73.1 >&2', '0.73.1'],
    ['echo 1.19.3-beta.2', '1.19.3'],
    ['echo 1.18.33; exit 1', '1.18.33'],
    ['[ "$1" = --version ] && [ $# = 1 ] && echo 1.2.3', '1.2.3'],
    ['echo unknown', undefined],
    ['exit 1', undefined],
  ])('by %s is read as %s', async (script, version) => {
    const path = createStage().write('cli', `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
    expect(await readVersion(path, { PATH: process.env['PATH'] ?? '' }, new AbortController().signal)).toBe(version)
  })

  it('is nothing when the executable cannot be started', async () => {
    const path = createStage().write('cli', 'no program')
    expect(await readVersion(path, {}, new AbortController().signal)).toBeUndefined()
  })
})

it('a probe says where the executable is, its version and what to do about it', async () => {
  const stage = createStage()
  const cliPath = stage.write('cli', '#!/bin/sh\necho codex-cli 0.22.0\n')
  chmodSync(cliPath, 0o755)
  expect(await createFakeBackend('codex', cliPath, stage).probe()).toEqual({
    isFound: true,
    path: cliPath,
    login: { state: 'unknown', why: 'Its `codex login status` does not say.', fix: 'codex login' },
    version: '0.22.0',
    problems: [
      'Version 0.22.0 has a known security hole (CVE-2025-61260, a repository can run commands when Codex starts in it): update to 0.23.0 or newer.',
      'Version 0.22.0 is older than 0.166.0, the oldest version known to work.',
    ],
  })
})

describe('a probe of a script for Node.js', () => {
  const TOO_OLD = (node: string) =>
    `Pi needs Node.js 22.19.0 or newer, but would run on 20.20.2 (${node}). Install a newer version and put it first on Aetheel's PATH.`

  it.each<[what: string, range: string | undefined, firstLine: string, isTold: boolean]>([
    ['that needs a newer one', '>=22.19', '#!/usr/bin/env node', true],
    ['that is content with it', '>=20.6.0', '#!/usr/bin/env node', false],
    ['that does not say what it needs', undefined, '#!/usr/bin/env node', false],
    ['in name only', '>=22.19', '#!/bin/sh', false],
  ])('%s', async (_, range, firstLine, isTold) => {
    const stage = createStage()
    const node = stage.write('node', '#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2\n')
    chmodSync(node, 0o755)
    stage.write('package.json', JSON.stringify({ engines: { node: range } }))
    const cliPath = stage.write('cli', `${firstLine}\necho no version\n`)
    chmodSync(cliPath, 0o755)
    const options = { environment: { PATH: `${dirname(node)}:${process.env['PATH']}` } }
    const { problems } = await createFakeBackend('pi', cliPath, stage, options).probe()
    expect(problems).toEqual([isTold ? TOO_OLD(node) : 'Its version could not be read: `--version` printed none.'])
  })
})
