// What others import, by the names they import it under: each resolves, loads and has types. The rest is closed.

import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from './kit/temporary-directory.js'

const EXPORTS: Record<string, string> = {
  aetheel: 'createBackend',
  'aetheel/client': 'AetheelClient',
  'aetheel/config.js': 'loadConfig',
  'aetheel/errors.js': 'GatewayError',
  'aetheel/gateway.js': 'startGateway',
  'aetheel/log.js': 'createLog',
  'aetheel/backends/types.js': 'BACKEND_NAMES',
  'aetheel/backends/registry.js': 'resolveBackendName',
  'aetheel/backends/claude-backend.js': 'ClaudeCodeBackend',
  'aetheel/backends/codex-backend.js': 'CodexBackend',
  'aetheel/backends/gemini-backend.js': 'GeminiBackend',
  'aetheel/backends/opencode-backend.js': 'OpenCodeBackend',
  'aetheel/backends/pi-backend.js': 'PiBackend',
  'aetheel/runtime/agent-runtime.js': 'AgentRuntime',
  'aetheel/runtime/session-manager.js': 'SessionManager',
  'aetheel/prompt/heartbeat.js': 'hasTasks',
  'aetheel/prompt/markdown-config-loader.js': 'MarkdownConfigLoader',
  'aetheel/prompt/system-prompt-assembler.js': 'SystemPromptAssembler',
}

const TYPES = { 'aetheel/channels/types.js': 'Channel' }

const CLOSED = [
  'aetheel/store/store.js',
  'aetheel/main.js',
  'aetheel/backends/claude/backend.js',
  'aetheel/backends/opencode/server/opencode-server-backend.js',
  'aetheel/channels/terminal.js',
  'aetheel/channels/types.js',
  'aetheel/runtime/hook-manager.js',
]

const PROJECT = join(import.meta.dirname, '..')

const run = promisify(execFile)

test('the exports resolve, with types, and nothing else does', async ({ onTestFinished }) => {
  const directory = temporaryDirectory(onTestFinished)
  const installed = join(directory, 'node_modules/aetheel')
  mkdirSync(installed, { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(installed, 'package.json'), readFileSync(join(PROJECT, 'package.json')))
  symlinkSync(join(PROJECT, 'node_modules'), join(installed, 'node_modules'))
  await compile(directory, [
    '-p',
    join(PROJECT, 'tsconfig.build.json'),
    '--noCheck',
    '--outDir',
    join(installed, 'dist'),
  ])
  const names = Object.entries(EXPORTS)
  const lines = names.map(([module, name], index) => `import { ${name} as e${index} } from '${module}'`)
  const types = Object.entries(TYPES).map(([module, name]) => `export type { ${name} } from '${module}'`)
  const loaded = names.map((_, index) => `typeof e${index}`)
  const codes = `${JSON.stringify(CLOSED)}.map((name) => import(name).then(() => 'open', (error) => error.code))`
  // What has no types cannot be imported where types are strict.
  writeFileSync(
    join(directory, 'main.ts'),
    [...lines, ...types, `console.log(JSON.stringify([[${loaded.join(', ')}], await Promise.all(${codes})]))`].join(
      '\n',
    ),
  )
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node']
  const roots = ['--typeRoots', join(PROJECT, 'node_modules/@types')]
  await compile(directory, ['main.ts', ...options, ...roots])
  const { stdout } = await run(process.execPath, ['main.js'], { cwd: directory })
  expect(JSON.parse(stdout)).toEqual([
    names.map(([, name]) => (name === 'BACKEND_NAMES' ? 'object' : 'function')),
    CLOSED.map(() => 'ERR_PACKAGE_PATH_NOT_EXPORTED'),
  ])
})

async function compile(cwd: string, options: string[]): Promise<void> {
  await run(join(PROJECT, 'node_modules/.bin/tsc'), options, { cwd }).catch((error: Error & { stdout: string }) => {
    // The compiler complains there.
    throw new Error(error.stdout, { cause: error })
  })
}
