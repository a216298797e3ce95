/** What `aetheel doctor` says about each agent: logged in, not logged in, and with `--live` whether it answers. */
import assert from 'node:assert/strict'
import type { AgentBackend, AgentLogin, BackendName } from '../src/backends/types.js'
import { liveFinding } from '../src/cli/doctor/live-report.js'
import { createScrubber } from '../src/credentials/scrubber.js'
import type { Case } from './case.js'
import { refuse, say } from './model-replies.js'
import { openOneshot, type OpenPlace } from './place.js'
import type { Script } from './scripted-model.js'

/** How each agent is logged in here. */
const how: Record<BackendName, string> = {
  claude: 'ANTHROPIC_API_KEY',
  codex: 'OPENAI_API_KEY',
  gemini: 'GEMINI_API_KEY',
  opencode: 'its settings of scripted',
  pi: 'ANTHROPIC_API_KEY',
}

/** In an empty home; OpenCode has free models for everybody. */
const withoutLogin: Record<BackendName, AgentLogin['state']> = {
  claude: 'logged-out',
  codex: 'logged-out',
  gemini: 'logged-out',
  opencode: 'unknown',
  pi: 'logged-out',
}

const login: Case = {
  name: 'login',
  title: 'doctor: logged in',
  async run({ agent, open }) {
    const { backend } = await openBackend(open, () => say('OK'))
    const probe = await backend.probe()
    assert.deepEqual(probe.login && { ...probe.login, fix: '' }, { state: 'logged-in', how: how[agent.name], fix: '' })
    const { mark, text } = await live(backend)
    assert.match(`${mark} ${text}`, /^✓ \w+: answered/)
    return `by ${how[agent.name]}; answered`
  },
}

const noLogin: Case = {
  name: 'no-login',
  title: 'doctor: not logged in',
  async run({ agent, open }) {
    const empty: OpenPlace = (options) =>
      openOneshot({ ...options, agent: { ...agent, homeFiles: () => ({}), environment: () => ({}) } })
    const { backend } = await openBackend(open, () => say('OK'), empty)
    const { login: found } = await backend.probe()
    assert.equal(found?.state, withoutLogin[agent.name])
    return `${found?.state}; ${found?.fix}`
  },
}

const refusedKey: Case = {
  name: 'refused-key',
  title: 'doctor: key refused',
  async run({ agent, open }) {
    const { backend } = await openBackend(open, () => refuse(401, 'The key is not valid.'))
    const { text } = await live(backend)
    assert.equal(text, `${agent.name}: its key or login was refused`)
    return text
  },
}

const unknownModel: Case = {
  name: 'unknown-model',
  title: 'doctor: unknown model',
  async run({ agent, open }) {
    const { backend } = await openBackend(open, () => refuse(404, 'The model `nope` does not exist.'))
    const { text } = await live(backend)
    assert.match(text, / is unknown, or not available to this login$/)
    return text.replace(agent.model, 'MODEL')
  },
}

export const loginCases: Case[] = [login, noLogin, refusedKey, unknownModel]

async function openBackend(
  open: Parameters<Case['run']>[0]['open'],
  script: Script,
  openPlace = openOneshot,
): Promise<{ backend: AgentBackend }> {
  let backend: AgentBackend | undefined
  await open(script, async (options) => {
    const place = await openPlace(options)
    backend = place.backend
    return place
  })
  assert.ok(backend)
  return { backend }
}

async function live(backend: AgentBackend) {
  const { signal } = new AbortController()
  const options = { request: {}, scrubber: createScrubber(), signal, timeoutMs: 100_000, now: Date.now }
  return liveFinding({ backend, probe: await backend.probe() }, options)
}
