// What others import, by the names they import it under: each resolves, loads and has types.

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

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

const PROJECT = join(import.meta.dirname, '..')

const run = promisify(execFile)

test('everything that others import resolves, with types', async ({ onTestFinished }) => {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-exports-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
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
  const loaded = names.map((_, index) => `typeof e${index}`)
  // What has no types cannot be imported where types are strict.
  writeFileSync(
    join(directory, 'main.ts'),
    [...lines, `console.log(JSON.stringify([${loaded.join(', ')}]))`].join('\n'),
  )
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node']
  const roots = ['--typeRoots', join(PROJECT, 'node_modules/@types')]
  await compile(directory, ['main.ts', ...options, ...roots])
  const { stdout } = await run(process.execPath, ['main.js'], { cwd: directory })
  expect(JSON.parse(stdout)).toEqual(names.map(([, name]) => (name === 'BACKEND_NAMES' ? 'object' : 'function')))
})

async function compile(cwd: string, options: string[]): Promise<void> {
  await run(join(PROJECT, 'node_modules/.bin/tsc'), options, { cwd }).catch((error: Error & { stdout: string }) => {
    // The compiler complains there.
    throw new Error(error.stdout, { cause: error })
  })
}
