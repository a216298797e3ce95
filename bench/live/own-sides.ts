/** Our own sides: one process per turn, warm processes, and the whole gateway around these. */
import { join } from 'node:path'
import { gatewayEnvironment } from '../../conformance/place.js'
import type { AgentBackend, AgentMode, AgentResult } from '../../src/backends/types.js'
import type { Channel } from '../../src/channels/types.js'
import { type GatewayConfig, loadConfig } from '../../src/config.js'
import { ConfiguredAgents } from '../../src/runtime/configured-agents.js'
import { startGateway } from '../../src/gateway.js'
import { createLog } from '../../src/log.js'
import { SYSTEM_PROMPT } from './script.js'
import { type Conversation, type OpenSide, type SidePlace, type SpokenTurn, TurnClock } from './side.js'

/** Conversations that the gateway serves concurrently. */
export const AT_ONCE = 8
const CHANNEL = 'bench'

/** `run()`; in `oneshot` each turn has its own session. */
export function runSide(mode: AgentMode): OpenSide {
  return async (place) => {
    const environment = environmentOf(place, mode)
    const agents = new ConfiguredAgents(loadConfig(environment), { environment, log: createLog({ level: 'silent' }) })
    const backend = agents.open(place.agent.name)
    return {
      open: async () => (mode === 'live' ? warm(backend, place.signal) : oneShot(backend, place.signal)),
      close: () => agents.stop(),
    }
  }
}

function oneShot(backend: AgentBackend, signal: AbortSignal): Conversation {
  return { say: async (prompt) => (await take(backend, prompt, signal)).turn }
}

function warm(backend: AgentBackend, signal: AbortSignal): Conversation {
  let sessionId: string | undefined
  return {
    async say(prompt) {
      const { turn, result } = await take(backend, prompt, signal, sessionId)
      sessionId = result?.sessionId
      return turn
    },
  }
}

/** Measured until the iteration ends. */
async function take(
  backend: AgentBackend,
  prompt: string,
  signal: AbortSignal,
  sessionId?: string,
): Promise<{ turn: SpokenTurn; result?: AgentResult }> {
  const clock = new TurnClock()
  const request = { prompt, systemPrompt: SYSTEM_PROMPT, ...(sessionId !== undefined && { sessionId }) }
  let result: AgentResult | undefined
  for await (const event of backend.run(request, signal)) {
    if (event.type === 'output') clock.heard(event.content)
    if (event.type === 'complete') ({ result } = event)
  }
  const turn = clock.end(result?.failure?.message ?? result?.finalOutput)
  return { turn, ...(result && { result }) }
}

/** From the message a channel hands over to the reply it gets; SQLite is on disk. */
export const gatewaySide: OpenSide = async (place) => {
  const environment = environmentOf(place, 'live')
  const config: GatewayConfig = loadConfig(environment)
  const listeners = new Map<string, { heard(text: string): void; replied(text: string): void }>()
  const channel: Channel = {
    name: CHANNEL,
    start: async () => {},
    show: ({ address, event }) => {
      if (event.type === 'output') listeners.get(address)?.heard(event.content)
    },
    send: async ({ address, text }) => listeners.get(address)?.replied(text),
    stop: async () => {},
    close: async () => {},
  }
  const log = createLog({ level: 'silent' })
  const gateway = await startGateway(config, { environment, log, channels: [channel] })
  const { onMessage } = gateway.hostOf(CHANNEL)
  let conversations = 0
  return {
    async open() {
      conversations += 1
      const address = `conversation-${conversations}`
      let messages = 0
      return {
        async say(prompt) {
          messages += 1
          const clock = new TurnClock()
          const turn = new Promise<SpokenTurn>((resolve) =>
            listeners.set(address, { heard: (text) => clock.heard(text), replied: (text) => resolve(clock.end(text)) }),
          )
          await onMessage({ address, platformId: `${address}-${messages}`, author: 'bench', text: prompt })
          return turn
        },
      }
    },
    close: () => gateway.stop(),
  }
}

export function environmentOf(place: SidePlace, mode: AgentMode): Record<string, string> {
  const { agent, installation, sandbox, endpoint } = place
  return {
    ...gatewayEnvironment(agent, installation, sandbox),
    AETHEEL_HOME: join(sandbox.temporary, 'gateway'),
    AGENT_MODE: mode,
    MAX_CONCURRENT_QUERIES: String(AT_ONCE),
    // All of them stay warm, however much memory they use.
    LIVE_MAX_MEMORY_MB: '100000',
    ...(endpoint && {
      OPENCODE_ENABLED: 'true',
      OPENCODE_MANAGED: 'false',
      OPENCODE_URL: endpoint.url,
      OPENCODE_PASSWORD: endpoint.password ?? '',
    }),
  }
}
