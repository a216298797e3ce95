// The options that keep the working directory from configuring each CLI or running anything unasked. The conformance
// case `untrusted` shows that they work.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import type { AgentRequest, BackendName } from '../../../src/backends/types.js'
import { createStage, record, recordStart, type Stage, type Start } from '../fake-cli.js'

const SESSION = '01a1e0f0-9fc2-706a-8db2-85fdf6bf24c6'
const NEWEST = { environment: { FAKE_VERSION: '9999.0.0' } }

async function start(name: BackendName, request: Partial<AgentRequest> = {}, stage = createStage()): Promise<Start> {
  return recordStart(name, { isUntrusted: true, ...request }, NEWEST, stage)
}

it("Claude reads only the operator's settings and starts no MCP server", async () => {
  const { argv } = await start('claude', { sessionId: SESSION, allowedTools: ['Read'] })
  expect(argv).toEqual([
    ...['--output-format', 'stream-json', '--verbose', '--include-partial-messages', '-p', '--max-turns', '25'],
    ...['--resume', SESSION, '--setting-sources', 'user', '--strict-mcp-config'],
    ...['--dangerously-skip-permissions', '--disallowedTools', 'mcp__*', '--tools', 'Read', '--allowedTools', 'Read'],
  ])
})

it('Codex trusts neither the directory nor one above it, and reads no AGENTS.md, skills and rules', async () => {
  const stage = createStage()
  const { argv } = await start('codex', { sessionId: SESSION }, stage)
  const projects = parents(stage.workingDir).map((path) => `"${path}"={trust_level="untrusted"}`)
  expect(argv).toEqual([
    ...['exec', '--json', '--dangerously-bypass-approvals-and-sandbox', '--cd', stage.workingDir],
    ...['--skip-git-repo-check', '-c', 'check_for_update_on_startup=false'],
    ...['--disable', 'unbounded_connection_retries'],
    ...['-c', `projects={${projects.join(',')}}`, '-c', 'project_doc_max_bytes=0'],
    ...['-c', 'skills.include_instructions=false', '--ignore-rules', 'resume', SESSION, '-'],
  ])
})

it.each([
  ['that trusts no project by itself is told to', '0.169.0', true],
  ['that does is told nothing', '0.168.9', false],
])('a Codex %s where the project is trusted', async (_, version, isTold) => {
  const stage = createStage()
  const { argv } = await recordStart('codex', {}, { environment: { FAKE_VERSION: version } }, stage)
  const settings = argv.filter((word) => word.startsWith('projects='))
  expect(settings).toEqual(isTold ? [`projects={"${stage.workingDir}"={trust_level="trusted"}}`] : [])
})

it('Codex never stores that a project is trusted, whatever a template says', async () => {
  expect((await start('codex', { command: { args: ['--trust'] } })).argv).not.toContain('--trust')
})

it('Gemini is told not to trust the directory, and gets its tools by a rule', async () => {
  const { argv, environment, files } = await start('gemini')
  expect({
    argv,
    trust: environment['GEMINI_CLI_TRUST_WORKSPACE'],
    policy: files['policy.toml'],
    settings: JSON.parse(files['.gemini/settings.json'] ?? '') as unknown,
  }).toEqual({
    argv: ['--output-format', 'stream-json', '--approval-mode', 'yolo', '--admin-policy', '<run>/policy.toml'],
    trust: 'false',
    policy: '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 950\nallowRedirection = true\n',
    settings: {
      general: {
        maxAttempts: 3,
        enableAutoUpdate: false,
        enableAutoUpdateNotification: false,
        sessionRetention: { enabled: false },
      },
      model: { maxSessionTurns: 25 },
      security: { folderTrust: { enabled: false } },
      advanced: { ignoreLocalEnv: true },
    },
  })
})

it('Gemini has the same rules for listed tools as elsewhere', async () => {
  const allowedTools = ['read_file']
  const [untrusted, trusted] = [await start('gemini', { allowedTools }), await recordStart('gemini', { allowedTools })]
  expect(untrusted.files['policy.toml']).toEqual(trusted.files['policy.toml'])
})

it('OpenCode reads nothing of the project and starts no language server or formatter', async () => {
  const { environment } = await start('opencode')
  const { OPENCODE_CONFIG_CONTENT = '', ...rest } = environment
  const variables = Object.entries(rest).filter(([name]) => name.startsWith('OPENCODE_'))
  expect({ settings: JSON.parse(OPENCODE_CONFIG_CONTENT) as unknown, ...Object.fromEntries(variables) }).toEqual({
    settings: { lsp: false, formatter: false },
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    OPENCODE_DISABLE_EXTERNAL_SKILLS: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
  })
})

it.each<[string, (path: string) => void]>([
  ['.opencode', (path) => mkdirSync(path)],
  ['opencode.json', (path) => writeFileSync(path, '{}')],
  ['opencode.jsonc', (path) => symlinkSync('nowhere', path)],
  ['../opencode.json', (path) => writeFileSync(path, '{}')],
])('OpenCode is not started beside %s, whose plug-ins it would load', async (name, make) => {
  const stage = createStage()
  const path = join(stage.workingDir, name)
  make(path)
  const { start: started, result } = await record('opencode', { isUntrusted: true }, NEWEST, stage)
  const message = `The project is untrusted and OpenCode would follow ${path}. Remove it, trust the project or choose another agent.`
  expect({ started, failure: result.failure }).toEqual({
    started: undefined,
    failure: { reason: 'refused', message, report: message },
  })
})

it("OpenCode is started below what is in the operator's home, and beside anything where the project is trusted", async () => {
  const stage = createStage()
  writeFileSync(join(stage.home, 'opencode.json'), '{}')
  const workingDir = join(stage.home, 'project')
  mkdirSync(workingDir)
  expect((await start('opencode', { workingDir }, stage)).cwd).toBe(workingDir)
  writeFileSync(join(workingDir, 'opencode.json'), '{}')
  expect((await recordStart('opencode', { workingDir }, NEWEST, stage)).cwd).toBe(workingDir)
})

it('Pi loads nothing it would have to find, and installs nothing whatever the operator says', async () => {
  const options = { environment: { ...NEWEST.environment, PI_OFFLINE: '0' } }
  const { argv, environment } = await recordStart('pi', { isUntrusted: true, sessionId: SESSION }, options)
  expect({ argv, offline: environment['PI_OFFLINE'] }).toEqual({
    argv: ['-p', '--mode', 'json', '--session', SESSION, '-ne', '-ns', '-np', '--no-themes', '-nc', '--no-approve'],
    offline: '1',
  })
})

it.each<[string, (path: string) => void]>([
  ['.pi/settings.json', (path) => writeFileSync(path, '{}')],
  ['.pi/SYSTEM.md', (path) => writeFileSync(path, '')],
  ['.pi/APPEND_SYSTEM.md', (path) => symlinkSync('nowhere', path)],
])('Pi is not started beside %s, which it would follow', async (name, make) => {
  const stage = createStage()
  makeParent(stage, name)
  make(join(stage.workingDir, name))
  const { start: started, result } = await record('pi', { isUntrusted: true }, NEWEST, stage)
  const message = `The project is untrusted and has ${name}, which Pi would follow. Remove the file, trust the project or choose another agent.`
  expect({ started, result }).toEqual({
    started: undefined,
    result: { isError: true, durationMs: 0, failure: { reason: 'refused', message, report: message } },
  })
})

it.each<[what: string, version: string | undefined, trust: string[]]>([
  ['that asks for trust is told to', '0.79.0', ['--approve']],
  ['that trusts every project is told nothing', '0.78.9', []],
  ['of an unknown version is told nothing', undefined, []],
])('a Pi %s where the project is trusted', async (_, version, trust) => {
  const stage = createStage()
  makeParent(stage, '.pi/settings.json')
  writeFileSync(join(stage.workingDir, '.pi/settings.json'), '{}')
  const environment = version === undefined ? {} : { FAKE_VERSION: version }
  const { argv } = await recordStart('pi', {}, { environment }, stage)
  expect(argv).toEqual(['-p', '--mode', 'json', ...trust])
})

it('of two trust options Pi takes the last: a template may withdraw trust, not grant it', async () => {
  const words = async (isUntrusted: boolean, arg: string): Promise<string[]> => {
    const { argv } = await recordStart('pi', { isUntrusted, command: { args: [arg] } }, NEWEST)
    return argv.filter((word) => word.endsWith('approve'))
  }
  expect([await words(false, '--no-approve'), await words(true, '--approve')]).toEqual([
    ['--approve', '--no-approve'],
    ['--approve', '--no-approve'],
  ])
})

function makeParent({ workingDir }: Stage, name: string): void {
  mkdirSync(dirname(join(workingDir, name)), { recursive: true })
}

function parents(path: string): string[] {
  return path === '/' ? ['/'] : [path, ...parents(dirname(path))]
}
