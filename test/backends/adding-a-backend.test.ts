// Follows docs/adding-a-backend.md to the letter, in a copy of the sources, to show that it suffices for a turn.

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { AgentEvent } from '../../src/backends/types.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const PROJECT = join(import.meta.dirname, '../..')

const run = promisify(execFile)

/** The code blocks of the section whose heading begins with this. */
function blocksOf(heading: string): string[] {
  const page = readFileSync(join(PROJECT, 'docs/adding-a-backend.md'), 'utf8')
  const section = page.split(/^## /m).find((text) => text.startsWith(heading)) ?? ''
  return [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, code = '']) => code)
}

const FAKE_CLI = `#!/bin/sh
if [ "$1" = --version ]; then echo 1.2.3; exit; fi
echo "$*" > arguments
cat > prompt
cat recorded
`

const TURN = `
import { readFileSync } from 'node:fs'
import { BACKEND_NAMES, createBackend } from './dist/index.js'
import { backendOf } from './dist/backends/agents.js'
import { loadConfig } from './dist/config.js'

const [cliPath, workingDir] = process.argv.slice(2)
const config = { cliPath, workingDir, queryTimeoutMs: 30_000, allowedTools: [], maxTurns: 25 }
const backend = createBackend(backendOf('acme'), config)
const events = []
const request = { prompt: 'Hi', model: 'large', systemPrompt: 'Be brief.' }
for await (const event of backend.run(request, new AbortController().signal)) events.push(event)
const { agentBackend } = loadConfig({ AGENT_BACKEND: 'acme', HOME: workingDir })
const [args, prompt] = ['arguments', 'prompt'].map((name) => readFileSync(workingDir + '/' + name, 'utf8'))
console.log(JSON.stringify({ events, names: BACKEND_NAMES, agentBackend, args, prompt }))
`

test('the page is enough to add an agent', async ({ onTestFinished }) => {
  const directory = temporaryDirectory(onTestFinished)
  for (const name of ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(PROJECT, name), join(directory, name), { recursive: true })
  }
  symlinkSync(join(PROJECT, 'node_modules'), join(directory, 'node_modules'))

  const [recorded = ''] = blocksOf('2. ')
  const [backend = ''] = blocksOf('3. ')
  const [imported = '', line = ''] = blocksOf('4. ')
  mkdirSync(join(directory, 'src/backends/acme'))
  writeFileSync(join(directory, 'src/backends/acme/backend.ts'), backend)
  const table = join(directory, 'src/backends/agents.ts')
  const registered = readFileSync(table, 'utf8').replace('export const AGENTS = {\n', (opening) => opening + line)
  writeFileSync(table, imported + registered)
  await run(join(PROJECT, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], { cwd: directory }).catch(
    (error: Error & { stdout: string }) => {
      // The compiler reports errors on stdout.
      throw new Error(error.stdout, { cause: error })
    },
  )

  const workingDir = join(directory, 'work')
  mkdirSync(workingDir)
  writeFileSync(join(workingDir, 'recorded'), recorded)
  writeFileSync(join(directory, 'acme'), FAKE_CLI, { mode: 0o755 })
  writeFileSync(join(directory, 'turn.mjs'), TURN)
  const { stdout } = await run(process.execPath, ['turn.mjs', join(directory, 'acme'), workingDir], { cwd: directory })
  const seen = JSON.parse(stdout) as Record<string, unknown> & { events: AgentEvent[] }

  const timestamp = expect.any(Number) as number
  expect(seen.events).toEqual([
    { timestamp, type: 'started', sessionId: 'acme-1' },
    { timestamp, type: 'output', content: 'Hello', stream: 'stdout' },
    {
      timestamp,
      type: 'complete',
      result: {
        isError: false,
        exitCode: 0,
        finalOutput: 'Hello',
        sessionId: 'acme-1',
        durationMs: expect.any(Number) as number,
      },
    },
  ])
  expect(seen).toMatchObject({
    names: expect.arrayContaining(['acme', 'claude', 'pi']) as string[],
    agentBackend: 'acme',
    args: expect.stringMatching(/^run --json --model large --system-file \S+\/system-prompt\.md\n$/) as string,
    prompt: 'Hi',
  })
})
