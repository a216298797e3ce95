import { describe, expect, it } from 'vitest'
import { BackendRegistry, createBackend } from '../../src/backends/registry.js'
import {
  type AgentBackend,
  BACKEND_NAMES,
  type BackendAdapterConfig,
  type BackendName,
} from '../../src/backends/types.js'

const CONFIG: BackendAdapterConfig = {
  cliPath: '/nowhere',
  workingDir: '/',
  queryTimeoutMs: 1_000,
  allowedTools: [],
  maxTurns: 25,
}

/** An agent that answers `validate` like this, and counts the calls. */
function createAvailable(name: BackendName, validate: () => Promise<boolean>) {
  const asked = { times: 0 }
  const unasked = () => {
    throw new Error('The registry asks nothing else')
  }
  const backend: AgentBackend = {
    name: () => name,
    validate() {
      asked.times += 1
      return validate()
    },
    execute: unasked,
    run: unasked,
    capabilities: unasked,
    probe: unasked,
  }
  return { backend, asked }
}

describe('the registry', () => {
  it('is empty at first', () => {
    const registry = new BackendRegistry()
    expect([registry.count(), registry.available(), registry.default(), registry.defaultProvider()]).toEqual([
      ...[0, [], undefined, undefined],
    ])
  })

  it('has the first backend registered as the default', () => {
    const registry = new BackendRegistry()
    const [codex, pi] = [createBackend('codex', CONFIG), createBackend('pi', CONFIG)]
    registry.register(codex)
    registry.register(pi)
    expect({
      default: registry.default() === codex,
      defaultProvider: registry.defaultProvider(),
      available: registry.available(),
      count: registry.count(),
      found: registry.get('pi') === pi,
      notFound: registry.get('claude'),
    }).toEqual({
      default: true,
      defaultProvider: 'codex',
      available: ['codex', 'pi'],
      count: 2,
      found: true,
      notFound: undefined,
    })
  })

  it('replaces a backend registered again, which stays the default', () => {
    const registry = new BackendRegistry()
    registry.register(createBackend('codex', CONFIG))
    const again = createBackend('codex', CONFIG)
    registry.register(again)
    expect([registry.count(), registry.default() === again]).toEqual([1, true])
  })

  it('takes another default among those registered', () => {
    const registry = new BackendRegistry()
    registry.register(createBackend('codex', CONFIG))
    registry.register(createBackend('pi', CONFIG))
    registry.setDefault('pi')
    expect(registry.defaultProvider()).toBe('pi')
  })

  it('refuses a default that is not registered, with those that are', () => {
    const registry = new BackendRegistry()
    registry.register(createBackend('codex', CONFIG))
    expect(() => registry.setDefault('claude')).toThrow('Unknown backend "claude". Registered: codex')
  })

  it('knows which agents can run now: those that say so, not those that fail to', async () => {
    const registry = new BackendRegistry()
    const { backend: claude } = createAvailable('claude', async () => true)
    registry.register(claude)
    registry.register(createAvailable('codex', async () => false).backend)
    registry.register(createAvailable('pi', () => Promise.reject(new Error('It broke'))).backend)
    expect(await registry.availableAgents()).toEqual([claude])
  })

  it('does not wait for an agent that takes too long to say', async () => {
    const registry = new BackendRegistry()
    registry.register(createAvailable('codex', () => new Promise(() => {})).backend)
    expect(await registry.availableAgents()).toEqual([])
  })

  it('asks each agent again only after a while', async () => {
    let now = 0
    const registry = new BackendRegistry(() => now)
    const { backend, asked } = createAvailable('claude', async () => true)
    registry.register(backend)
    const times: number[] = []
    for (now of [0, 9_999, 10_000]) {
      await registry.availableAgents()
      times.push(asked.times)
    }
    expect(times).toEqual([1, 1, 2])
  })

  it('asks an agent registered anew at once', async () => {
    const registry = new BackendRegistry(() => 0)
    registry.register(createAvailable('claude', async () => false).backend)
    await registry.availableAgents()
    const { backend } = createAvailable('claude', async () => true)
    registry.register(backend)
    expect(await registry.availableAgents()).toEqual([backend])
  })
})

it.each(BACKEND_NAMES)('%s is created by its name, and not found where it is not', async (name) => {
  const backend = createBackend(name, CONFIG)
  expect([backend.name(), await backend.validate()]).toEqual([name, false])
})

it.each(BACKEND_NAMES)('%s declares what it can do', (name) => {
  const declared = {
    claude: { supportsToolControl: true, supportsMaxTurns: true, supportsStreaming: true, maxPromptLength: 10_000_000 },
    codex: {
      supportsToolControl: false,
      supportsMaxTurns: false,
      supportsStreaming: false,
      maxPromptLength: 1_048_576,
    },
    gemini: { supportsToolControl: true, supportsMaxTurns: true, supportsStreaming: true, maxPromptLength: 8_388_608 },
    opencode: { supportsToolControl: true, supportsMaxTurns: true, supportsStreaming: false, maxPromptLength: 0 },
    pi: { supportsToolControl: true, supportsMaxTurns: true, supportsStreaming: true, maxPromptLength: 0 },
  }
  expect(createBackend(name, { ...CONFIG, model: 'm' }).capabilities()).toEqual({
    provider: name,
    supportsSessionContinuation: true,
    supportsModelSelection: true,
    supportedModels: [],
    defaultModel: 'm',
    ...declared[name],
  })
})
