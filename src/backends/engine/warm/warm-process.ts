// One warm process: its stdout feeds its connection, and messages to it go in as lines.

import { randomUUID } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { StreamedText } from '../../../credentials/streamed-text.js'
import { messageOf } from '../../../errors.js'
import { BoundedText, LineSplitter, type OutputLimits, type ShortenLine } from '../../../processes/output.js'
import { type ProcessExit, type ProcessOptions, startProcess } from '../../../processes/local-process.js'
import type { ProcessEntry } from '../../../processes/process-table.js'
import { endTools } from '../../../processes/process-tree.js'
import { type JsonObject, JsonReader, stripAnsi } from '../jsonl.js'
import type { AgentRequest } from '../../types.js'
import { type AgentCli, runVariables } from '../agent-cli.js'
import type { Send, WarmConnection, WarmDriver } from './types.js'

/** Informs a turn about the process it runs in. */
export interface ProcessListener {
  /** The connection has received a message of this size. */
  heard(bytes: number): void
  /** A line that is not a message, scrubbed. */
  text(line: string): void
  /** The process printed too much; it is being stopped. */
  overflowed(problem: string): void
  /** The process has ended. A callback, because a `then` on `ended` would keep every turn in memory while the process lives. */
  gone(exit: ProcessExit): void
}

export interface WarmProcess {
  /** Absent if it could not be started. */
  readonly pid: number | undefined
  readonly connection: WarmConnection
  /** Contract: never rejects; settles when nothing it started is alive. */
  readonly ended: Promise<ProcessExit>
  /** Whether it has ended or is being stopped, so no turn can begin. */
  readonly isOver: boolean
  /** Returns a function that removes the listener. */
  listen(listener: ProcessListener): () => void
  /** Called by a listening turn that is about to begin. Settles when earlier stderr has been read and discarded, unless
   *  another turn is running. The first turn keeps it: it is about the start. */
  discardEarlierStderr(): Promise<void>
  /** Its stderr since then, scrubbed. */
  stderr(): string
  /** Called at the end of a turn: ends processes that tools left behind and, after a stop, tools that are still running,
   *  except those of earlier turns. Does nothing while another turn is running. */
  endStrays(wasStopped: boolean): Promise<void>
  /** Ends the process and everything it started. */
  stop(): void
}

/**
 * Starts a process on this machine that can take turns like this one. Its files are removed when it ends.
 *
 * Contract: rejects if it cannot be prepared; a failure to spawn is reported by `ended`.
 */
export async function openWarmProcess(
  agent: AgentCli,
  driver: WarmDriver,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<WarmProcess> {
  const { limits, scrubber, owner } = agent.dependencies
  const turn = agent.turnOf(request)
  agent.warnAboutIgnoredOptions(request, turn)
  const place = agent.localPlace(turn)
  try {
    const ofRun = runVariables(request, place.files)
    const variables = agent.environmentOf({}, turn, ofRun)
    const invocation = await driver.launch(turn, place, signal, variables)
    const options = {
      executable: agent.executableIn(place, turn),
      args: invocation.args,
      cwd: turn.workingDir,
      environment: agent.environmentOf(invocation, turn, ofRun),
      runId: randomUUID(),
      ...(owner && { owner }),
      stopSignal: agent.definition.traits.stopSignal,
    }
    const connect = (send: Send): WarmConnection => driver.connect(send, place, variables)
    const process = startWarmProcess(options, connect, driver.shorten, limits, scrubber)
    void process.ended.then(() => agent.leave(place))
    return process
  } catch (error) {
    agent.leave(place)
    throw error
  }
}

/** `limits.totalBytes` applies to one turn. Between turns it may print at most `limits.lineBytes`. */
function startWarmProcess(
  options: Omit<ProcessOptions, 'stdin' | 'keepsInput' | 'onStdout' | 'onStderr'>,
  connect: (send: Send) => WarmConnection,
  shorten: ShortenLine | undefined,
  limits: OutputLimits,
  scrubber: Scrubber,
): WarmProcess {
  const listeners = new Set<ProcessListener>()
  let isOver = false
  let exit: ProcessExit | undefined
  let hasServed = false
  /** Processes with a session of their own from before the first turn, and tools that earlier turns left running. */
  let background: ProcessEntry[] = []

  const stderr = new TurnStderr(scrubber)
  let bytes = 0
  /** Printed while no turn was running. */
  let idleBytes = 0
  const countIdleOutput = (length: number): void => {
    idleBytes = listeners.size > 0 ? 0 : idleBytes + length
    if (idleBytes > limits.lineBytes) stop()
  }
  const reader = new JsonReader(
    {
      object(message) {
        try {
          connection.receive(message)
        } catch (error) {
          sendText(`Not understood: a message of the agent (${messageOf(error)})`)
        }
        for (const listener of listeners) listener.heard(bytes)
      },
      text: (line) => sendText(scrubber.scrub(line)),
    },
    // Every message is one line, so garbage that looks like the start of a value must not hold messages up.
    0,
  )
  const sendText = (line: string): void => {
    for (const listener of listeners) listener.text(line)
  }
  const splitter = new LineSplitter(
    { ...limits, totalBytes: Infinity },
    (line, length) => {
      bytes = length
      if (!isOver) reader.line(line)
    },
    (problem) => {
      for (const listener of listeners) listener.overflowed(problem)
      stop()
    },
    shorten,
  )

  const child = startProcess({
    ...options,
    stdin: '',
    keepsInput: true,
    onStdout(chunk) {
      countIdleOutput(chunk.length)
      splitter.push(chunk)
    },
    onStderr(chunk) {
      countIdleOutput(chunk.length)
      stderr.push(chunk)
    },
  })
  const connection = connect((message: JsonObject) => child.write(`${JSON.stringify(message)}\n`))
  connection.ready.then(
    () => {
      background = child.tools()
    },
    // Reported to whoever awaits `ready`, which may be nobody.
    () => {},
  )

  function stop(): void {
    isOver = true
    child.stop()
  }

  return {
    pid: child.pid,
    connection,
    ended: child.ended.then((how) => {
      isOver = true
      exit = how
      for (const listener of listeners) listener.gone(how)
      return how
    }),
    get isOver() {
      return isOver
    },
    listen(listener) {
      listeners.add(listener)
      if (exit) listener.gone(exit)
      return () => listeners.delete(listener)
    },
    async discardEarlierStderr() {
      const isFirst = !hasServed
      hasServed = true
      if (isFirst || listeners.size > 1) return
      // Two rounds of the event loop: by then, everything that is in the pipe now has been read.
      await nextRound()
      await nextRound()
      stderr.clear()
    },
    stderr: () => stderr.read(),
    async endStrays(wasStopped) {
      if (listeners.size > 0) return
      // Before any await: later processes belong to another turn.
      const tools = child.tools()
      if (wasStopped) await endTools(tools.filter((tool) => !isAmong(tool, background)))
      else background = tools
      await child.endStrays('descendants')
    },
    stop,
  }
}

/** Scrubbed as it arrives: truncated, a secret would not be recognised. */
class TurnStderr {
  #kept = new BoundedText()
  readonly #decoder = new StringDecoder('utf8')
  readonly #text: StreamedText<'stderr'>

  constructor(scrubber: Scrubber) {
    this.#text = new StreamedText(scrubber)
  }

  push(chunk: Buffer): void {
    for (const { text } of this.#text.push(this.#decoder.write(chunk), 'stderr')) this.#kept.append(text)
  }

  read(): string {
    for (const { text } of this.#text.flush()) this.#kept.append(text)
    return stripAnsi(this.#kept.toString())
  }

  clear(): void {
    this.#text.flush()
    this.#kept = new BoundedText()
  }
}

function isAmong({ pid, startTime }: ProcessEntry, entries: ProcessEntry[]): boolean {
  return entries.some((entry) => entry.pid === pid && entry.startTime === startTime)
}
