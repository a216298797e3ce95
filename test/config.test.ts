import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { backendConfig, loadConfig } from '../src/config.js'
import { GatewayError } from '../src/errors.js'

const DEFAULTS = {
  agentBackend: 'claude',
  backendCliPath: 'claude',
  backendMaxTurns: 25,
  allowedTools: [],
  queryTimeoutMs: 1_800_000,
  idleTimeoutMs: 600_000,
  workingDir: process.cwd(),
  agentEnvPass: [],
  warnings: [],
}

const KNOWN = 'claude, codex, gemini, opencode, pi'

describe('loadConfig from the environment', () => {
  it('has a default for everything', () => {
    expect(loadConfig({})).toEqual(DEFAULTS)
  })

  it('reads every variable', () => {
    const config = loadConfig({
      AGENT_BACKEND: 'opencode',
      BACKEND_CLI_PATH: '/opt/opencode',
      BACKEND_MODEL: 'anthropic/some-model',
      BACKEND_MAX_TURNS: '7',
      ALLOWED_TOOLS: ' read, Bash(git log,git show) ,,edit ',
      QUERY_TIMEOUT_MS: '1000',
      IDLE_TIMEOUT_MS: '0',
      WORKING_DIR: 'some/where',
      AGENT_ENV_PASS: 'GITHUB_TOKEN,NPM_*',
      LOG_LEVEL: 'debug',
    })
    expect(config).toEqual({
      agentBackend: 'opencode',
      backendCliPath: '/opt/opencode',
      backendModel: 'anthropic/some-model',
      backendMaxTurns: 7,
      allowedTools: ['read', 'Bash(git log,git show)', 'edit'],
      queryTimeoutMs: 1000,
      idleTimeoutMs: 0,
      workingDir: resolve('some/where'),
      agentEnvPass: ['GITHUB_TOKEN', 'NPM_*'],
      logLevel: 'debug',
      warnings: [],
    })
  })

  it('takes an empty variable as not set', () => {
    const names = ['BACKEND_CLI_PATH', 'BACKEND_MODEL', 'BACKEND_MAX_TURNS', 'ALLOWED_TOOLS', 'QUERY_TIMEOUT_MS']
    const others = ['IDLE_TIMEOUT_MS', 'WORKING_DIR', 'AGENT_ENV_PASS', 'LOG_LEVEL']
    expect(loadConfig(Object.fromEntries([...names, ...others].map((name) => [name, ''])))).toEqual(DEFAULTS)
  })

  it('calls the agent by its own name unless told where it is', () => {
    expect(loadConfig({ AGENT_BACKEND: 'gemini' })).toEqual({
      ...DEFAULTS,
      agentBackend: 'gemini',
      backendCliPath: 'gemini',
    })
  })

  it.each(['0', '-1', '2.5', 'many', 'Infinity', 'NaN', '5 turns'])(
    'replaces BACKEND_MAX_TURNS=%j by 25 and warns',
    (value) => {
      const warning = `BACKEND_MAX_TURNS must be a positive whole number, not ${JSON.stringify(value)}; using 25.`
      expect(loadConfig({ BACKEND_MAX_TURNS: value })).toEqual({ ...DEFAULTS, warnings: [warning] })
    },
  )

  it.each(['claudecode', 'Claude', '', ' claude', 'toString', 'constructor', '__proto__'])(
    'refuses AGENT_BACKEND=%j with the valid names',
    (name) => {
      expect(problemsOf({ AGENT_BACKEND: name })).toEqual([`AGENT_BACKEND: Unknown backend "${name}". Known: ${KNOWN}`])
    },
  )

  it('tells every problem at once', () => {
    const environment = { AGENT_BACKEND: 'nope', QUERY_TIMEOUT_MS: 'soon', IDLE_TIMEOUT_MS: '-5', LOG_LEVEL: 'loud' }
    expect(problemsOf(environment)).toEqual([
      expect.stringMatching(/^AGENT_BACKEND: /),
      expect.stringMatching(/^QUERY_TIMEOUT_MS: /),
      expect.stringMatching(/^IDLE_TIMEOUT_MS: /),
      expect.stringMatching(/^LOG_LEVEL: /),
    ])
  })

  it.each(['0', '-1', '1.5', 'Infinity', '0x', '12h'])('refuses QUERY_TIMEOUT_MS=%j', (value) => {
    expect(problemsOf({ QUERY_TIMEOUT_MS: value })).toEqual([expect.stringMatching(/^QUERY_TIMEOUT_MS: /)])
  })
})

describe('loadConfig from a file', () => {
  it('reads JSON5', () => {
    const path = file(`{
      // which agent
      agentBackend: 'pi', backendMaxTurns: 3, allowedTools: ['read', 'bash'],
      queryTimeoutMs: 5000, logLevel: 'silent',
    }`)
    expect(loadConfig({}, path)).toEqual({
      ...DEFAULTS,
      agentBackend: 'pi',
      backendCliPath: 'pi',
      backendMaxTurns: 3,
      allowedTools: ['read', 'bash'],
      queryTimeoutMs: 5000,
      logLevel: 'silent',
    })
  })

  it('stands back behind the environment', () => {
    const path = file(`{ agentBackend: 'pi', backendModel: 'from-file', logLevel: 'nonsense' }`)
    expect(loadConfig({ AGENT_BACKEND: 'codex', LOG_LEVEL: 'warn' }, path)).toEqual({
      ...DEFAULTS,
      agentBackend: 'codex',
      backendCliPath: 'codex',
      backendModel: 'from-file',
      logLevel: 'warn',
    })
  })

  it('names unknown keys together with every other problem', () => {
    const path = file(`{ agentBackend: 'nope', agentbackend: 'pi', toString: 1, queryTimeoutMs: 0 }`)
    expect(problemsOf({ LOG_LEVEL: 'loud' }, path)).toEqual([
      `${path}: agentBackend: Unknown backend "nope". Known: ${KNOWN}`,
      expect.stringContaining(`${path}: queryTimeoutMs: `),
      expect.stringMatching(/^LOG_LEVEL: /),
      expect.stringContaining(`${path}: unknown key "agentbackend", "toString". Known: agentBackend, backendCliPath`),
    ])
  })

  it.each(['true', '[]', 'null', '""', '"soon"', '{}'])('refuses queryTimeoutMs: %s', (value) => {
    const path = file(`{ queryTimeoutMs: ${value} }`)
    expect(problemsOf({}, path)).toEqual([expect.stringContaining(`${path}: queryTimeoutMs`)])
  })

  it.each(['true', '[]', '"x"', '0', '{}'])('replaces backendMaxTurns: %s by 25 and warns', (value) => {
    expect(loadConfig({}, file(`{ backendMaxTurns: ${value} }`))).toEqual({
      ...DEFAULTS,
      warnings: [expect.stringMatching(/must be a positive whole number.*using 25\.$/)],
    })
  })

  it.each([
    ['that is broken', '{ agentBackend: '],
    ['that is empty', ''],
    ['that holds a list', '[]'],
    ['that holds a word', '"claude"'],
  ])('refuses one %s and names it', (_, content) => {
    const path = file(content)
    expect(problemsOf({}, path)).toEqual([expect.stringContaining(`${path}: `)])
  })

  it('refuses one that is not there', () => {
    expect(problemsOf({}, '/nowhere/aetheel.json5')).toEqual([
      expect.stringContaining('/nowhere/aetheel.json5: ENOENT'),
    ])
  })
})

describe('backendConfig', () => {
  const config = loadConfig({
    AGENT_BACKEND: 'codex',
    BACKEND_CLI_PATH: '/opt/codex',
    BACKEND_MODEL: 'some-model',
    BACKEND_MAX_TURNS: '9',
    ALLOWED_TOOLS: 'read',
    QUERY_TIMEOUT_MS: '1000',
    WORKING_DIR: '/work',
  })
  const shared = { workingDir: '/work', queryTimeoutMs: 1000, allowedTools: ['read'], maxTurns: 9 }

  it('gives path and model to the chosen agent', () => {
    expect(backendConfig(config, 'codex')).toEqual({ ...shared, cliPath: '/opt/codex', model: 'some-model' })
  })

  it('gives neither to another one', () => {
    expect(backendConfig(config, 'claude')).toEqual({ ...shared, cliPath: 'claude' })
  })
})

function problemsOf(environment: NodeJS.ProcessEnv, path?: string): string[] {
  try {
    loadConfig(environment, path)
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'config_invalid') return error.message.split('\n')
    throw error
  }
  return []
}

function file(content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'aetheel-config-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'aetheel.json5')
  writeFileSync(path, content)
  return path
}
