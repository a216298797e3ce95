/**
 * What `run()` adds to a turn on an `opencode serve` of our own that is warm: the same prompt once through the backend
 * and once as one bare HTTP call, turn about, each in a session of its own, against a model that answers at once.
 */
import assert from 'node:assert/strict'
import { agentOf } from '../conformance/agents.js'
import { findPinned } from '../conformance/installations.js'
import { createSandbox } from '../conformance/sandbox.js'
import { startScriptedModel } from '../conformance/scripted-model.js'
import { OpenCodeBackend } from '../src/backends/opencode-backend.js'
import { ManagedServers } from '../src/backends/opencode-server/managed-servers.js'
import { OpenCodeServerBackend } from '../src/backends/opencode-server/opencode-server-backend.js'
import type { OpenCodeEndpoint, ServerNeeds } from '../src/backends/opencode-server/servers.js'
import type { AgentBackend, AgentResult } from '../src/backends/types.js'
import { createScrubber } from '../src/credentials/scrubber.js'
import { createLog } from '../src/log.js'
import { atMost, type BenchOptions, lowerQuartile, type Measurement } from './measurement.js'

const RATIO_GOAL = 1.1
const WARM_UPS = 4
/** Such a turn is over in a tenth of a second, and as noisy as a longer one. */
const MORE_PAIRS = 3
const TURN_TIMEOUT_MS = 60_000

const NO_NEEDS: ServerNeeds = { environment: {}, secretFiles: [], isUntrusted: false }

const answer = 'Something, said by the scripted model.'
const prompt = 'Please say something.'
const systemPrompt = 'Answer in one sentence.'

interface Side {
  /** Takes one more turn in the session of this side; in milliseconds. */
  time(): Promise<number>
}

export async function measureWarmTurns({ pairs, signal, progress }: BenchOptions): Promise<Measurement[]> {
  const agent = agentOf('opencode')
  const { cliPath, path } = await findPinned(agent)
  const model = await startScriptedModel(() => ({ type: 'text', deltas: [answer] }))
  const sandbox = await createSandbox(agent, model.url, path)
  const { workspace, environment } = sandbox
  try {
    const config = {
      ...{ cliPath, workingDir: workspace, queryTimeoutMs: TURN_TIMEOUT_MS },
      ...{ allowedTools: [], maxTurns: 25, model: agent.model },
    }
    const dependencies = { environment, log: createLog({ level: 'silent' }) }
    const oneShot = new OpenCodeBackend(config, dependencies)
    const servers = new ManagedServers({ cli: () => oneShot, scrubber: createScrubber(), log: dependencies.log })
    const backend = new OpenCodeServerBackend(config, dependencies, servers, oneShot)
    const { endpoint, release } = await servers.acquire(NO_NEEDS, signal)
    await release('nothing')
    const sides = {
      run: await openRunSide(backend, signal),
      bare: await openBareSide(endpoint, workspace, agent.model, signal),
    }
    const times = { run: new Array<number>(), bare: new Array<number>() }
    const count = pairs * MORE_PAIRS
    for (let pair = -WARM_UPS; pair < count; pair += 1) {
      for (const side of pair % 2 === 0 ? (['run', 'bare'] as const) : (['bare', 'run'] as const)) {
        const time = await sides[side].time()
        if (pair >= 0) times[side].push(time)
      }
    }
    await backend.stop()
    const [run, bare] = [lowerQuartile(times.run), lowerQuartile(times.bare)]
    progress(`warm turn of opencode serve: bare ${bare.toFixed(1)} ms, run() ${run.toFixed(1)} ms, ${count} pairs`)
    return [
      atMost('warm-turn.opencode-serve.ratio', run / bare, RATIO_GOAL, 'run()/bare'),
      atMost('warm-turn.opencode-serve.added', run - bare, bare * (RATIO_GOAL - 1), 'ms'),
    ]
  } finally {
    await sandbox.remove()
    await model.close()
  }
}

async function openRunSide(backend: AgentBackend, signal: AbortSignal): Promise<Side> {
  const { sessionId } = await take()

  async function take(continued?: string): Promise<AgentResult> {
    let result: AgentResult | undefined
    const request = { prompt, systemPrompt, ...(continued !== undefined && { sessionId: continued }) }
    for await (const event of backend.run(request, signal)) {
      if (event.type === 'complete') result = event.result
    }
    signal.throwIfAborted()
    assert.ok(result, 'the turn is complete')
    assert.equal(result.failure?.message ?? result.finalOutput, answer, 'the answer through the backend')
    return result
  }

  return {
    async time() {
      const startedAt = performance.now()
      await take(sessionId)
      return performance.now() - startedAt
    },
  }
}

async function openBareSide(
  { url, username, password }: OpenCodeEndpoint,
  directory: string,
  model: string,
  signal: AbortSignal,
): Promise<Side> {
  const [providerID, modelID] = model.split('/')
  const headers = {
    'content-type': 'application/json',
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
  }

  async function post(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal })
    assert.equal(response.status, 200, path)
    return response.json()
  }

  const query = new URLSearchParams({ directory })
  const { id } = (await post(`/session?${query.toString()}`, { title: 'Bare' })) as { id: string }
  const message = { parts: [{ type: 'text', text: prompt }], system: systemPrompt, model: { providerID, modelID } }
  return {
    async time() {
      const startedAt = performance.now()
      const said = await post(`/session/${id}/message`, message)
      const duration = performance.now() - startedAt
      assert.ok(JSON.stringify(said).includes(answer), 'the bare answer')
      return duration
    },
  }
}
