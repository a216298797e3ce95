/** The ways to talk to an agent that are compared. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Agent } from '../../conformance/agents.js'
import type { Installation } from '../../conformance/installations.js'
import { createSandbox, type Sandbox } from '../../conformance/sandbox.js'
import type { OpenCodeEndpoint } from '../../src/backends/opencode/server/servers.js'
import { abortable } from '../../src/core/async.js'

export interface SpokenTurn {
  firstTextMs: number
  totalMs: number
  text: string
}

export interface Conversation {
  say(prompt: string): Promise<SpokenTurn>
}

export interface Side {
  /** Begins a conversation. */
  open(): Promise<Conversation>
  /** Where its agent can be reached by others. */
  endpoint?: OpenCodeEndpoint
  /** Ends what it has started itself. */
  close(): Promise<void>
}

/** Where one side is: what it starts has a home directory of its own, by which it is found. */
export interface SidePlace {
  agent: Agent
  installation: Installation
  sandbox: Sandbox
  /** A server that runs already, to be used in place of one of its own. */
  endpoint?: OpenCodeEndpoint
  signal: AbortSignal
}

export type OpenSide = (place: SidePlace) => Promise<Side>

export interface OpenedSide extends Side {
  sandbox: Sandbox
}

/** From the moment a message is sent. */
export class TurnClock {
  readonly #startedAt = performance.now()
  #firstTextMs: number | undefined
  #text = ''

  heard(text: string): void {
    this.#firstTextMs ??= performance.now() - this.#startedAt
    this.#text += text
  }

  /** The answer of record is what was heard, unless it is told apart. */
  end(text = this.#text): SpokenTurn {
    const totalMs = performance.now() - this.#startedAt
    return { firstTextMs: this.#firstTextMs ?? totalMs, totalMs, text }
  }
}

export async function openSide(
  openIn: OpenSide,
  modelUrl: string,
  place: Omit<SidePlace, 'sandbox'>,
): Promise<OpenedSide> {
  const sandbox = await createSandbox(place.agent, modelUrl, place.installation.path)
  try {
    const { open, close, ...rest } = await openIn({ ...place, sandbox })
    return {
      ...rest,
      sandbox,
      async open() {
        const { say } = await open()
        // Nobody else ends a turn that is never answered.
        return { say: (prompt) => abortable(place.signal, () => say(prompt)) }
      },
      async close() {
        await close()
        await sandbox.remove()
      },
    }
  } catch (error) {
    await sandbox.remove()
    throw error
  }
}

export async function startModel(): Promise<{ url: string; close(): void }> {
  // In a group of its own: what ends the benchmark from a terminal must not leave the agents without a model.
  const child = fork(join(import.meta.dirname, 'model-process.ts'), { detached: true })
  const [url] = (await once(child, 'message')) as [string]
  return { url, close: () => child.kill() }
}
