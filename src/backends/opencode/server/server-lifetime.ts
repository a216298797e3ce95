// A server that takes the turns of all sessions; see docs/opencode-server.md.

import { type Lanes, withDeadline } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import { type AgentCli, isWarmTurn, type SessionNotes } from '../../engine/agent-cli.js'
import type { BackendDependencies } from '../../engine/cli-backend.js'
import { OneShot } from '../../engine/one-shot.js'
import { refused, refusedDirectory, refusedInput, refusedVariable, refusedVersionToAsk } from '../../engine/refusals.js'
import {
  compactionOf,
  type Lease,
  type Lifetime,
  type Run,
  startRun,
  type TimeLimits,
  type Turn,
  turnOf,
} from '../../engine/turn.js'
import { UNTRUSTED_CHECK_MS } from '../../engine/untrusted-git.js'
import type { Failed } from '../../engine/failures.js'
import { OPENCODE } from '../format.js'
import type { AgentEvent, AgentMode, AgentRequest, BackendAdapterConfig } from '../../types.js'
import type { OpenCodeClient } from './client.js'
import type { EventStream } from './event-stream.js'
import { ServerDrive } from './server-drive.js'
import { NeedsRefused, type OpenCodeEndpoint, type OpenCodeServers, type ServerLease } from './servers.js'

export interface ServerConnection {
  client: OpenCodeClient
  stream: EventStream
}

interface ServerOptions {
  config: BackendAdapterConfig
  dependencies: BackendDependencies
  servers: OpenCodeServers
  /** What is known about the agent's sessions. */
  sessions: {
    directories: SessionNotes<string>
    queue: Lanes
    /** Whose last turn here had all tools, so another such turn need not reset the rules. If another client has restricted
     *  the session since, that turn stays restricted. */
    free: SessionNotes<true>
  }
  connect(endpoint: OpenCodeEndpoint): ServerConnection
  /** Takes one-shot turns. */
  cli: AgentCli
  /** The default for requests that name none. Undefined if every turn runs on a server, whatever the request says. */
  mode: AgentMode | undefined
}

const VERSION_CHECK_MS = 2_000

export class ServerLifetime implements Lifetime {
  #leaveSession: (() => void) | undefined
  #run: Run<ServerDrive> | undefined
  #ranTools = false
  #mayHaveLeft = true

  constructor(
    private readonly request: AgentRequest,
    /** The request's signal. */
    private readonly signal: AbortSignal,
    private readonly options: ServerOptions,
  ) {}

  async acquire(signal: AbortSignal): Promise<Lease | Failed> {
    const { config, sessions, cli } = this.options
    if (!(await this.#isServed(signal))) return new OneShot(cli, this.request).acquire(signal)
    const turn = turnOf(this.request, config, sessions.directories)
    signal.throwIfAborted()
    const refusal = refusedInput(turn, OPENCODE) ?? refusedVariable(this.request)
    if (refusal) return refusal
    if (turn.sessionId !== undefined) await this.#enter(turn.sessionId, signal)
    try {
      signal.throwIfAborted()
      const lease = await this.#lease(turn, signal)
      if ('endpoint' in lease) return this.#leased(turn, lease)
      signal.throwIfAborted()
      this.#leaveSession?.()
      return lease
    } catch (error) {
      this.#leaveSession?.()
      throw error
    }
  }

  #isServed(signal: AbortSignal): Promise<boolean> {
    const { mode, cli } = this.options
    return isWarmTurn({
      mode: mode ? (this.request.mode ?? mode) : 'live',
      mustBeWarm: this.request.approve !== undefined || compactionOf(this.request) !== undefined,
      needsCommandLine: false,
      oldestKnown: OPENCODE.versions.oldestKnown,
      version: () => withDeadline(VERSION_CHECK_MS, signal, (deadline) => cli.version(deadline)),
    })
  }

  #leased(turn: Turn, lease: ServerLease): Lease {
    const { free } = this.options.sessions
    // A compaction leaves the session's rules as they are.
    const isFree = turn.allowedTools.length === 0 && !turn.isAsking && !turn.compaction
    if (!isFree) free.delete(turn.sessionId)
    return {
      start: (limits) => this.#start(turn, isFree && free.get(turn.sessionId) === true, lease, limits),
      onEvent: (event) => this.#onEvent(event, turn, isFree),
      release: async () => {
        const late = this.#run?.drive.late
        const left = this.#run?.drive.hasLostServer ? 'broken' : this.#mayHaveLeft ? 'untidy' : 'nothing'
        const vacate = async (): Promise<void> => {
          await lease.release(left)
          this.#leaveSession?.()
        }
        // Late events hold nobody up, but they must not mix with the next turn.
        if (late) void late.then(vacate)
        else await vacate()
      },
    }
  }

  #start(turn: Turn, hasRules: boolean, { endpoint }: ServerLease, timeLimits: TimeLimits): Run {
    const { now, elapsed, scrubber, limits } = this.options.dependencies
    const plan = { turn, hasRules, request: this.request, limits, ...this.options.connect(endpoint) }
    this.#run = startRun(
      { ...OPENCODE, scrubber, now, elapsed, ...timeLimits },
      (control) => new ServerDrive(plan, control),
    )
    return this.#run
  }

  #onEvent(event: AgentEvent, { workingDir }: Turn, isFree: boolean): Promise<void> | undefined {
    if (event.type === 'tool_use') this.#ranTools = true
    if (event.type === 'complete') {
      const { directories, free } = this.options.sessions
      const { isError, sessionId } = event.result
      this.#mayHaveLeft = this.#ranTools || isError
      directories.set(sessionId, workingDir)
      if (isFree && !isError) free.set(sessionId, true)
    }
    // A consumer that learns of a new session may send it the next prompt at once.
    return event.type === 'started' && event.sessionId ? this.#enter(event.sessionId, this.signal) : undefined
  }

  /** One turn at a time in each session. */
  async #enter(sessionId: string, signal: AbortSignal): Promise<void> {
    this.#leaveSession ??= await this.options.sessions.queue.enter(sessionId, signal)
  }

  /** A server for the turn, or why there is none. Contract: never rejects. */
  async #lease(turn: Turn, signal: AbortSignal): Promise<ServerLease | Failed> {
    const { environment = {}, secretFiles = [] } = this.request
    let lease: ServerLease | undefined
    try {
      const needs = { environment, secretFiles, isUntrusted: turn.isUntrusted }
      lease = await this.options.servers.acquire(needs, signal)
      const obstacle = await this.#obstacle(turn, lease.endpoint, signal)
      signal.throwIfAborted()
      if (!obstacle) return lease
      await lease.release('nothing')
      return obstacle
    } catch (error) {
      await lease?.release('nothing')
      return { reason: error instanceof NeedsRefused ? 'refused' : 'spawn', message: messageOf(error) }
    }
  }

  async #obstacle(turn: Turn, endpoint: OpenCodeEndpoint, signal: AbortSignal): Promise<Failed | undefined> {
    // On another machine, the directory cannot be checked.
    const missing = isOnThisMachine(endpoint) ? refusedDirectory(turn.workingDir) : undefined
    const mute = missing ?? (turn.isAsking ? await this.#obstacleToAsking(endpoint) : undefined)
    if (mute || !turn.isUntrusted) return mute
    const { cli } = this.options
    const message = await withDeadline(UNTRUSTED_CHECK_MS, signal, (deadline) => cli.obstacleIn(turn, deadline))
    return message === undefined ? undefined : refused(message)
  }

  /** Contract: rejects if the server does not answer. */
  async #obstacleToAsking(endpoint: OpenCodeEndpoint): Promise<Failed | undefined> {
    const { version } = await this.options.connect(endpoint).client.health()
    return refusedVersionToAsk(OPENCODE.label, version, OPENCODE.versions.oldestKnown)
  }
}

function isOnThisMachine({ url }: OpenCodeEndpoint): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)
}
