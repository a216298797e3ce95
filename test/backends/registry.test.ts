import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BackendRegistry, createBackend, resolveBackendName } from '../../src/backends/registry.js'
import { GatewayError } from '../../src/errors.js'
import { type AgentBackend, BACKEND_NAMES, type BackendName } from '../../src/backends/types.js'
import { adapterConfig } from '../kit/adapter-config.js'

describe('BackendRegistry', () => {
  it('is empty at first', () => {
    const registry = new BackendRegistry()
    expect([registry.count(), registry.available(), registry.default(), registry.defaultProvider()]).toEqual([
      0,
      [],
      undefined,
      undefined,
    ])
  })

  it('finds registered backends', () => {
    const [pi, codex] = [fakeBackend('pi'), fakeBackend('codex')]
    const registry = registryOf(pi, codex)
    expect([registry.get('pi') === pi, registry.get('codex') === codex, registry.get('gemini')]).toEqual([
      true,
      true,
      undefined,
    ])
  })

  it('takes the first one registered as the default', () => {
    const [pi, codex] = [fakeBackend('pi'), fakeBackend('codex')]
    const registry = registryOf(pi, codex)
    expect([registry.defaultProvider(), registry.default() === pi, registry.available(), registry.count()]).toEqual([
      'pi',
      true,
      ['pi', 'codex'],
      2,
    ])
  })

  it('can be given another default', () => {
    const registry = registryOf(fakeBackend('pi'), fakeBackend('codex'))
    registry.setDefault('codex')
    registry.register(fakeBackend('claude'))
    expect(registry.defaultProvider()).toEqual('codex')
  })

  it('refuses a default that is not registered, and keeps the one it has', () => {
    const registry = registryOf(fakeBackend('pi'), fakeBackend('codex'))
    expect(() => registry.setDefault('gemini')).toThrow(
      expect.objectContaining({
        code: 'backend_unknown',
        message: 'Unknown backend "gemini". Registered: pi, codex',
      }),
    )
    expect(registry.defaultProvider()).toEqual('pi')
  })

  it('replaces one of the same name, even the default', () => {
    const [old, replacement] = [fakeBackend('pi'), fakeBackend('pi')]
    const registry = registryOf(old, replacement)
    expect([registry.count(), registry.get('pi') === replacement, registry.default() === replacement]).toEqual([
      1,
      true,
      true,
    ])
  })
})

describe('availableAgents', () => {
  it('leaves out those that are not installed or fail to answer', async () => {
    const registry = registryOf(
      fakeBackend('claude', async () => false),
      fakeBackend('codex'),
      fakeBackend('gemini', () => Promise.reject(new Error('broken'))),
      fakeBackend('pi'),
    )
    expect(await namesOf(registry)).toEqual(['codex', 'pi'])
  })

  it('does not wait for one that never answers', async () => {
    const registry = registryOf(
      fakeBackend('claude', () => new Promise(() => {})),
      fakeBackend('pi'),
    )
    expect(await namesOf(registry)).toEqual(['pi'])
  })

  it('asks again only after ten seconds', async () => {
    const { registry, clock, backend } = withCounter()
    const names = []
    for (const time of [0, 9_999, 10_000, 19_999]) {
      clock.time = time
      names.push(await namesOf(registry))
    }
    expect({ names, calls: backend.calls }).toEqual({ names: [['pi'], ['pi'], [], []], calls: 2 })
  })

  it('asks once for two simultaneous callers', async () => {
    const { registry, backend } = withCounter()
    await Promise.all([namesOf(registry), namesOf(registry)])
    expect(backend.calls).toEqual(1)
  })

  it('asks at once after another was registered under the name', async () => {
    const { registry } = withCounter()
    await registry.availableAgents()
    registry.register(fakeBackend('pi', async () => false))
    expect(await namesOf(registry)).toEqual([])
  })
})

describe('resolveBackendName', () => {
  it('knows exactly the five names, and that claudecode is claude', () => {
    expect(resolveBackendName('claudecode')).toBe('claude')
    const raw = fc.oneof(fc.string(), fc.constantFrom(...BACKEND_NAMES, 'toString', 'Claudecode', '', ' pi', 'PI'))
    fc.assert(
      fc.property(raw, (name) => {
        const isKnown = (BACKEND_NAMES as readonly string[]).includes(name)
        expect(attempt(() => resolveBackendName(name))).toEqual(
          isKnown ? name : ['backend_unknown', `Unknown backend "${name}". Known: claude, codex, gemini, opencode, pi`],
        )
      }),
      { numRuns: 300 },
    )
  })

  it('takes claude when nothing is said', () => {
    expect(resolveBackendName(undefined)).toEqual('claude')
  })
})

describe('createBackend', () => {
  const config = adapterConfig({ cliPath: '/nowhere' })

  it('makes the one of that name', () => {
    const made = BACKEND_NAMES.map((name) => createBackend(name, config))
    expect(made.map((backend) => [backend.name(), backend.constructor.name])).toEqual([
      ['claude', 'ClaudeCodeBackend'],
      ['codex', 'CodexBackend'],
      ['gemini', 'GeminiBackend'],
      ['opencode', 'OpenCodeBackend'],
      ['pi', 'PiBackend'],
    ])
  })

  it('refuses any other name', () => {
    expect(() => createBackend('toString' as BackendName, config)).toThrow('Unknown backend "toString"')
  })

  it.each(BACKEND_NAMES)('%s is created by its name, and not available if not installed', async (name) => {
    const backend = createBackend(name, config)
    expect([backend.name(), await backend.validate()]).toEqual([name, false])
  })

  it.each(BACKEND_NAMES)('%s declares what it can do', (name) => {
    const row = (tools: boolean, turns: boolean, streams: boolean, commands: boolean, size: number) => ({
      supportsToolControl: tools,
      supportsMaxTurns: turns,
      supportsStreaming: streams,
      supportsCommands: commands,
      supportsCompact: name === 'claude',
      remembersPausedTurns: name !== 'gemini',
      maxPromptLength: size,
    })
    const declared = {
      claude: row(true, true, true, true, 10_000_000),
      codex: row(false, false, false, false, 1_048_576),
      gemini: row(true, true, true, true, 8_388_608),
      opencode: row(true, true, false, false, 0),
      pi: row(true, true, true, true, 0),
    }
    expect(createBackend(name, { ...config, model: 'm' }).capabilities()).toEqual({
      provider: name,
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportedModels: [],
      defaultModel: 'm',
      ...declared[name],
    })
  })
})

/** What it returns, or code and message of what it throws. */
function attempt<T>(act: () => T): T | [string, string] {
  try {
    return act()
  } catch (error) {
    if (error instanceof GatewayError) return [error.code, error.message]
    throw error
  }
}

function registryOf(...backends: AgentBackend[]): BackendRegistry {
  const registry = new BackendRegistry()
  for (const backend of backends) registry.register(backend)
  return registry
}

async function namesOf(registry: BackendRegistry): Promise<BackendName[]> {
  return (await registry.availableAgents()).map((backend) => backend.name())
}

/** A clock to set, and a backend that is there the first time only and counts how often it is asked. */
function withCounter() {
  const clock = { time: 0 }
  const backend = { calls: 0 }
  const registry = new BackendRegistry(() => clock.time)
  registry.register(
    fakeBackend('pi', async () => {
      backend.calls += 1
      return backend.calls === 1
    }),
  )
  return { registry, clock, backend }
}

function fakeBackend(name: BackendName, validate: () => Promise<boolean> = async () => true): AgentBackend {
  const unused = () => {
    throw new Error('Not part of this test')
  }
  return {
    name: () => name,
    validate,
    run: unused,
    execute: unused,
    capabilities: unused,
    models: unused,
    probe: unused,
  }
}
