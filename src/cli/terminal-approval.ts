import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ApprovalRequest, Approve } from '../backends/types.js'
import type { Scrubber } from '../credentials/scrubber.js'
import { printable } from '../core/one-line.js'
import type { Output } from './turn-printer.js'

interface TerminalOptions {
  /** Undefined if nobody can answer. */
  input: Readable | undefined
  output: Output
  scrubber: Scrubber
}

/** Sent to an agent that asks where nobody can answer. */
export const NOBODY =
  'Nobody can be asked here whether this is allowed. Go on without it, or end with what you would do and why.'
const REFUSED = 'The person who was asked denied this.'

/** Asks the person at the terminal, one question at a time. Without one, everything is denied. */
export function approveAtTerminal({ input, output, scrubber }: TerminalOptions): Approve {
  let before: Promise<unknown> = Promise.resolve()
  return ({ toolName, toolInput }: ApprovalRequest, signal) => {
    if (!input) return Promise.resolve({ isAllowed: false, message: NOBODY })
    const question = printable(scrubber.scrub(`${toolName} ${JSON.stringify(toolInput)}`))
    const answer = before.then(async () => {
      // The tool's line comes first.
      await nextTurn()
      if (!signal.aborted) output.write(`\nAllow ${question}? [y/N] `)
      return (await isAllowed(input, signal)) ? { isAllowed: true as const } : { isAllowed: false, message: REFUSED }
    })
    before = answer
    return answer
  }
}

/** Reads the next line; end of input means no. */
async function isAllowed(input: Readable, signal: AbortSignal): Promise<boolean> {
  // Not in terminal mode, so that Ctrl-C still raises a signal.
  const lines = createInterface({ input, terminal: false })
  const close = (): void => lines.close()
  signal.addEventListener('abort', close)
  try {
    return await new Promise<boolean>((resolve) => {
      lines.once('line', (line) => resolve(/^y(es)?$/i.test(line.trim()))).once('close', () => resolve(false))
      if (signal.aborted || input.readableEnded) close()
    })
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}
