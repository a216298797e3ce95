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
  /** Where others can reach its agent. */
  endpoint?: OpenCodeEndpoint
  /** Ends what it started itself. */
  close(): Promise<void>
}

/** Where one side runs: its processes have their own home directory, by which they are found. */
export interface SidePlace {
  agent: Agent
  installation: Installation
  sandbox: Sandbox
  /** A running server to use instead of starting one. */
  endpoint?: OpenCodeEndpoint
  signal: AbortSignal
}

export type OpenSide = (place: SidePlace) => Promise<Side>

export interface OpenedSide extends Side {
  sandbox: Sandbox
}

/** Starts when a message is sent. */
export class TurnClock {
  readonly #startedAt = performance.now()
  #firstTextMs: number | undefined
  #text = ''

  heard(text: string): void {
    this.#firstTextMs ??= performance.now() - this.#startedAt
    this.#text += text
  }

  /** The answer of record is the streamed text, unless it is given separately. */
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
        // Nothing else ends a turn that is never answered.
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
  // In its own process group: Ctrl-C on the benchmark must not leave the agents without a model.
  const child = fork(join(import.meta.dirname, 'model-process.ts'), { detached: true })
  const [url] = (await once(child, 'message')) as [string]
  return { url, close: () => child.kill() }
}
