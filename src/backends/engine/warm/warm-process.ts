// One warm process: what it prints goes to its connection, and what is said to it goes in as lines.

import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { Scrubber } from '../../../credentials/scrubber.js'
import { StreamedText } from '../../../credentials/streamed-text.js'
import { messageOf } from '../../../errors.js'
import { BoundedText } from '../../../processes/bounded-text.js'
import { LineSplitter, type OutputLimits, type ShortenLine } from '../../../processes/line-splitter.js'
import { type ProcessExit, type ProcessOptions, startProcess } from '../../../processes/local-process.js'
import type { ProcessEntry } from '../../../processes/process-table.js'
import { endTools } from '../../../processes/process-tree.js'
import { type JsonObject, JsonReader, stripAnsi } from '../jsonl.js'
import type { WarmConnection } from './types.js'

export interface WarmProcessPlan {
  process: Omit<ProcessOptions, 'stdin' | 'keepsInput' | 'onStdout' | 'onStderr'>
  connect: (send: (message: JsonObject) => void) => WarmConnection
  shorten?: ShortenLine
  /** `totalBytes` is of one turn. Between turns it may print as much as on one line. */
  limits: OutputLimits
  scrubber: Scrubber
}

/** What a turn hears of the process it runs in. */
export interface ProcessListener {
  /** The connection has had a message, of so many bytes. */
  heard(bytes: number): void
  /** A line that is no message, scrubbed. */
  text(line: string): void
  /** Nothing more is read of the process; it is being stopped. */
  overflowed(problem: string): void
  /** Nothing of it is alive. Not by `ended`, which would hold every turn for as long as the process lives. */
  gone(exit: ProcessExit): void
}

export interface WarmProcess {
  /** Absent where it could not be started. */
  readonly pid: number | undefined
  readonly connection: WarmConnection
  /** Contract: never rejects; settles when nothing of it is alive. */
  readonly ended: Promise<ProcessExit>
  /** Whether it has ended or is being stopped: no turn can begin. */
  readonly isOver: boolean
  /** Returns how to listen no more. */
  listen(listener: ProcessListener): () => void
  /** For a turn that listens and is about to begin. Settles when what came before it on stderr has been read, and is forgotten
   *  unless another turn is under way. The first turn keeps it: it is about the start. */
  forgetEarlier(): Promise<void>
  /** What it printed on stderr since then, scrubbed. */
  stderr(): string
  /** For the end of a turn: ends what tools have left behind, and after a stop also the tools that still run, but for those of
   *  earlier turns. Does nothing while another turn is under way. */
  endStrays(wasStopped: boolean): Promise<void>
  /** Ends the process and everything it started. */
  stop(): void
}

export function startWarmProcess(plan: WarmProcessPlan): WarmProcess {
  const { scrubber, limits } = plan
  const listeners = new Set<ProcessListener>()
  let isOver = false
  let exit: ProcessExit | undefined
  let hasServed = false
  /** What had a session of its own before the first turn, and tools that turns have left to run. */
  let background: ProcessEntry[] = []

  let stderr = new BoundedText()
  const stderrDecoder = new StringDecoder('utf8')
  const stderrText = new StreamedText<'stderr'>(scrubber)

  let bytes = 0
  /** Printed since the last turn, for nobody. */
  let unaskedBytes = 0
  const countUnasked = (length: number): void => {
    unaskedBytes = listeners.size > 0 ? 0 : unaskedBytes + length
    if (unaskedBytes > limits.lineBytes) stop()
  }
  const reader = new JsonReader(
    {
      object(message) {
        try {
          connection.receive(message)
        } catch (error) {
          tellText(`Not understood: a message of the agent (${messageOf(error)})`)
        }
        for (const listener of listeners) listener.heard(bytes)
      },
      text: (line) => tellText(scrubber.scrub(line)),
    },
    // Every message is one line: none waits for a value that a line of garbage seems to begin.
    0,
  )
  const tellText = (line: string): void => {
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
    plan.shorten,
  )

  const child = startProcess({
    ...plan.process,
    stdin: '',
    keepsInput: true,
    onStdout(chunk) {
      countUnasked(chunk.length)
      splitter.push(chunk)
    },
    onStderr(chunk) {
      countUnasked(chunk.length)
      for (const { text } of stderrText.push(stderrDecoder.write(chunk), 'stderr')) stderr.append(text)
    },
  })
  const connection = plan.connect((message: JsonObject) => child.write(`${JSON.stringify(message)}\n`))
  connection.ready.then(
    () => {
      background = child.tools()
    },
    // Whoever waits for it hears of the failure; nobody may be waiting.
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
    async forgetEarlier() {
      const isFirst = !hasServed
      hasServed = true
      if (isFirst || listeners.size > 1) return
      // To the end of what the event loop is at, and then once around: whatever is in the pipe by now is read there.
      await nextRound()
      await nextRound()
      stderrText.flush()
      stderr = new BoundedText()
    },
    stderr() {
      for (const { text } of stderrText.flush()) stderr.append(text)
      return stripAnsi(stderr.toString())
    },
    async endStrays(wasStopped) {
      if (listeners.size > 0) return
      // Looked for before anything is waited for: what comes later is of another turn.
      const tools = child.tools()
      if (wasStopped) await endTools(tools.filter((tool) => !isAmong(tool, background)))
      else background = tools
      await child.endStrays('descendants')
    },
    stop,
  }
}

function isAmong({ pid, startTime }: ProcessEntry, entries: ProcessEntry[]): boolean {
  return entries.some((entry) => entry.pid === pid && entry.startTime === startTime)
}
