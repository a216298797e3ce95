// OpenCode by way of a server that takes many turns, in place of one process for each; see docs/opencode-server.md.

import { setMaxListeners } from 'node:events'
import { Lanes, withDeadline } from '../../../core/async.js'
import { messageOf } from '../../../errors.js'
import { type BackendDependencies, completeDependencies } from '../../engine/backend-dependencies.js'
import { type CliBackend, UNTRUSTED_LOOK_MS } from '../../engine/cli-backend.js'
import { executeTurn } from '../../engine/execute-turn.js'
import { OPENCODE } from '../format.js'
import { modeInUse } from '../../engine/version.js'
import { compareVersions } from '../../../core/versions.js'
import {
  CANCELLED,
  refusedDirectory,
  refusedInput,
  refusedRun,
  refusedVariable,
  refusedVersionToAsk,
} from '../../engine/refusals.js'
import { SessionDirectories } from '../../engine/session-directories.js'
import type { Failed } from '../../engine/translation.js'
import { type Turn, turnOf } from '../../engine/turn.js'
import { type Run, startRun } from '../../engine/turn-run.js'
import { startTimer, timeLimits, tookTooLong } from '../../engine/turn-watch.js'
import type {
  AgentBackend,
  AgentCapabilities,
  AgentCommand,
  AgentEvent,
  AgentMode,
  AgentProbe,
  AgentRequest,
  BackendAdapterConfig,
  BackendEventResult,
  StreamCallback,
} from '../../types.js'
import { OpenCodeClient } from './client.js'
import { EventStream } from './event-stream.js'
import { FreeSessions } from './free-sessions.js'
import { ServerDrive } from './server-drive.js'
import { NeedsRefused, type OpenCodeEndpoint, type OpenCodeServers, type ServerLease } from './servers.js'

/** The command line of the same agent. */
export type OneShot = Pick<CliBackend, 'run' | 'obstacleIn' | 'isInstalledSince'>

interface Connection {
  client: OpenCodeClient
  stream: EventStream
}

export class OpenCodeServerBackend implements AgentBackend {
  readonly #dependencies: BackendDependencies
  readonly #directories = new SessionDirectories()
  readonly #queue = new Lanes()
  readonly #freeSessions = new FreeSessions()
  /** By everything that makes an endpoint another one. */
  readonly #connections = new Map<string, Connection>()

  constructor(
    private config: BackendAdapterConfig,
    dependencies: Partial<BackendDependencies>,
    private readonly servers: OpenCodeServers,
    /** Takes the turns that a server cannot: in a pod, or with a command of the operator. */
    private oneShot: OneShot,
    /** For requests that name none. Left out, every turn is one of a server. */
    private mode?: AgentMode,
  ) {
    this.#dependencies = completeDependencies(dependencies)
  }

  /** For the turns that begin from now on. */
  configure(config: BackendAdapterConfig, oneShot: OneShot, mode?: AgentMode): void {
    this.config = config
    this.oneShot = oneShot
    this.mode = mode
  }

  name() {
    return 'opencode' as const
  }

  execute(
    prompt: string,
    systemPrompt: string,
    sessionId?: string,
    onStream?: StreamCallback,
  ): Promise<BackendEventResult> {
    return executeTurn(this, this.#dependencies.log, prompt, systemPrompt, sessionId, onStream)
  }

  async *run(request: AgentRequest, signal: AbortSignal): AsyncGenerator<AgentEvent, void, undefined> {
    const needsProcess = request.pod || (request.command && needsCommandLine(request.command))
    if (needsProcess || !(await this.#isServed(request, signal))) {
      yield* this.oneShot.run(request, signal)
      return
    }
    const { now, elapsed } = this.#dependencies
    const limits = timeLimits(request, this.config)
    const turn = turnOf(request, this.config, this.#directories)
    const refusal = signal.aborted ? CANCELLED : (refusedInput(turn, OPENCODE) ?? refusedVariable(request))
    if (refusal) {
      yield* refusedRun(refusal, now)
      return
    }

    const startedAt = elapsed()
    const preparing = new AbortController()
    let stopped: Failed | undefined
    let run: Run | undefined
    let drive: ServerDrive | undefined
    let leave: (() => void) | undefined
    let lease: ServerLease | undefined
    let ranTools = false
    let mayHaveLeft = true
    const stop = (failed: Failed): void => {
      stopped ??= failed
      preparing.abort()
      run?.stop(failed)
    }
    const cancel = (): void => stop(CANCELLED)
    // A caller may start any number of runs with one signal.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel)
    const timer = startTimer(() => stop(tookTooLong(limits.timeoutMs)), limits.timeoutMs)
    try {
      if (turn.sessionId !== undefined) leave = await this.#queue.enter(turn.sessionId, preparing.signal)
      const prepared = stopped ? undefined : await this.#prepare(request, turn, preparing.signal)
      clearTimeout(timer)
      if (prepared && 'endpoint' in prepared) lease = prepared
      if (!lease) {
        yield* refusedRun(stopped ?? (prepared as Failed), now)
        return
      }
      limits.spentMs = elapsed() - startedAt
      const isFree = turn.allowedTools.length === 0 && !turn.isAsking
      if (!isFree) this.#freeSessions.delete(turn.sessionId)
      const plan = {
        turn,
        hasItsRules: isFree && this.#freeSessions.has(turn.sessionId),
        ...this.#connect(lease.endpoint),
        ...(request.approve && { approve: request.approve }),
        ...(request.onSteerable && { onSteerable: request.onSteerable }),
        limits: this.#dependencies.limits,
      }
      const { label, failureSigns } = OPENCODE
      const { scrubber } = this.#dependencies
      run = startRun({ label, failureSigns, scrubber, now, elapsed, ...limits }, (control) => {
        drive = new ServerDrive(plan, control)
        return drive
      })
      if (stopped) run.stop(stopped)
      for await (const event of run.events) {
        // Whoever is told of a new session may send the next prompt to it at once.
        if (event.type === 'started' && event.sessionId) leave ??= await this.#queue.enter(event.sessionId, signal)
        if (event.type === 'tool_use') ranTools = true
        if (event.type === 'complete') {
          mayHaveLeft = ranTools || event.result.isError
          this.#directories.remember(event.result.sessionId, turn.workingDir)
          if (isFree && !event.result.isError) this.#freeSessions.add(event.result.sessionId)
        }
        yield event
      }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      // Reached early when the consumer leaves the loop: the agent must not work on for nobody.
      cancel()
      await run?.ended
      const left = drive?.hasLostServer ? 'broken' : mayHaveLeft ? 'untidy' : 'nothing'
      const vacate = async (): Promise<void> => {
        await lease?.release(left)
        leave?.()
      }
      // Nobody waits for what is still on its way, but it must not get among that of the next turn.
      if (drive?.late) void drive.late.then(vacate)
      else await vacate()
    }
  }

  async validate(): Promise<boolean> {
    return (await this.servers.probe()).isFound
  }

  async probe(): Promise<AgentProbe> {
    const probe = await this.servers.probe()
    if (!probe.isFound) return probe
    return { ...probe, ...modeInUse(this.mode ?? 'live', probe.version, OPENCODE.versions.oldestKnown) }
  }

  capabilities(): AgentCapabilities {
    return {
      provider: this.name(),
      supportsSessionContinuation: true,
      supportsModelSelection: true,
      supportsToolControl: true,
      supportsMaxTurns: true,
      supportsStreaming: this.mode !== 'oneshot',
      supportedModels: [],
      ...(this.config.model !== undefined && { defaultModel: this.config.model }),
      maxPromptLength: 0,
    }
  }

  /** Ends the connections, and the servers that are ours. Contract: no run is at work. */
  async stop(): Promise<void> {
    for (const { stream } of this.#connections.values()) stream.close()
    await this.servers.stop()
  }

  async #isServed(request: AgentRequest, signal: AbortSignal): Promise<boolean> {
    // Its command line never asks.
    if (!this.mode || request.approve) return true
    const { mode = this.mode } = request
    if (mode !== 'auto') return mode === 'live'
    return this.oneShot.isInstalledSince(OPENCODE.versions.oldestKnown, VERSION_LOOK_MS, signal)
  }

  /** A server for the turn, or why there is none. Contract: never rejects. */
  async #prepare(request: AgentRequest, turn: Turn, signal: AbortSignal): Promise<ServerLease | Failed> {
    const { environment = {}, secretFiles = [] } = request
    let lease: ServerLease | undefined
    try {
      lease = await this.servers.acquire({ environment, secretFiles, isUntrusted: turn.isUntrusted }, signal)
      const obstacle = await this.#obstacle(turn, lease.endpoint, signal)
      if (!obstacle && !signal.aborted) return lease
      await lease.release('nothing')
      return obstacle ?? CANCELLED
    } catch (error) {
      await lease?.release('nothing')
      return { reason: error instanceof NeedsRefused ? 'refused' : 'spawn', message: messageOf(error) }
    }
  }

  async #obstacle(turn: Turn, endpoint: OpenCodeEndpoint, signal: AbortSignal): Promise<Failed | undefined> {
    // On another machine it cannot be looked for.
    const missing = isOnThisMachine(endpoint) ? refusedDirectory(turn.workingDir) : undefined
    const mute = missing ?? (turn.isAsking ? await this.#obstacleToAsking(endpoint) : undefined)
    if (mute || !turn.isUntrusted) return mute
    const message = await withDeadline(UNTRUSTED_LOOK_MS, signal, (look) => this.oneShot.obstacleIn(turn, look))
    return message === undefined ? undefined : { reason: 'refused', message }
  }

  /** Contract: rejects when the server does not answer. */
  async #obstacleToAsking(endpoint: OpenCodeEndpoint): Promise<Failed | undefined> {
    const { version } = await this.#connect(endpoint).client.health()
    const { oldestKnown } = OPENCODE.versions
    if (version !== undefined && compareVersions(version, oldestKnown) >= 0) return undefined
    return refusedVersionToAsk(OPENCODE.label, oldestKnown)
  }

  #connect(endpoint: OpenCodeEndpoint): Connection {
    const key = JSON.stringify([endpoint.url, endpoint.username, endpoint.password])
    const known = this.#connections.get(key)
    if (known) return known
    const { scrubber, limits } = this.#dependencies
    if (endpoint.password !== undefined) scrubber.add([endpoint.password])
    const client = new OpenCodeClient(endpoint, {
      scrub: (text) => scrubber.scrub(text),
      maxBytes: limits.lineBytes * ANSWER_LINES,
    })
    const onClosed = (): void => void this.#connections.delete(key)
    const connection = { client, stream: new EventStream(client, { maxCharacters: limits.lineBytes, onClosed }) }
    this.#connections.set(key, connection)
    return connection
  }
}

const VERSION_LOOK_MS = 2_000

/** Not every template says something of it: with none, there are still the prefixes and the like of `inbound.reply`. */
function needsCommandLine({ executable, args, sessionArgs, format }: AgentCommand): boolean {
  return executable !== undefined || args.length > 0 || sessionArgs !== undefined || format === 'text'
}

/** What is read at once after a gap may be as large as so many events. */
const ANSWER_LINES = 4

function isOnThisMachine({ url }: OpenCodeEndpoint): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname)
}
