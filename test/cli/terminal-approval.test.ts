import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import type { Approve } from '../../src/backends/types.js'
import { approveAtTerminal } from '../../src/cli/terminal-approval.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { until } from '../kit/waiting.js'

const NEVER = new AbortController().signal
const REQUEST = { toolName: 'Bash', toolInput: { command: 'ls' } }

function setup(): { approve: Approve; input: PassThrough; printed: () => string } {
  const input = new PassThrough()
  let printed = ''
  const output = { write: (text: string | Uint8Array) => Boolean((printed += String(text))) }
  const approve = approveAtTerminal({ input, output, scrubber: createScrubber(['a-long-secret']) })
  return { approve, input, printed: () => printed }
}

it.each([
  ['y\n', true],
  ['Yes\n', true],
  ['\n', false],
  ['no\n', false],
  ['yes, but not now\n', false],
])('takes %j for an answer', async (line, isAllowed) => {
  const { approve, input } = setup()
  input.write(line)
  expect((await approve(REQUEST, NEVER)).isAllowed).toBe(isAllowed)
})

it('shows what is meant on one line, without secrets', async () => {
  const { approve, input, printed } = setup()
  input.write('y\n')
  await approve({ toolName: 'Bash', toolInput: { command: 'echo a-long-secret\u202E\u001B[2J' } }, NEVER)
  expect(printed()).toBe('\nAllow Bash {"command":"echo [secret] \\u001b[2J"}? [y/N] ')
})

it('asks one thing after the other', async () => {
  const { approve, input, printed } = setup()
  const first = approve(REQUEST, NEVER)
  const second = approve({ ...REQUEST, toolName: 'Write' }, NEVER)
  await until(() => printed() !== '', 'the first question')
  expect(printed()).toBe('\nAllow Bash {"command":"ls"}? [y/N] ')
  input.write('y\n')
  expect((await first).isAllowed).toBe(true)
  input.write('n\n')
  expect((await second).isAllowed).toBe(false)
})

it('allows nothing when the input ends, the turn is over, or nobody is there', async () => {
  const ended = setup()
  ended.input.end()
  const over = new AbortController()
  const waiting = setup().approve(REQUEST, over.signal)
  over.abort()
  const nobody = approveAtTerminal({ input: undefined, output: { write: () => true }, scrubber: createScrubber([]) })
  const answers = await Promise.all([
    ended.approve(REQUEST, NEVER),
    ended.approve(REQUEST, NEVER),
    waiting,
    nobody(REQUEST, NEVER),
  ])
  expect(answers.map(({ isAllowed }) => isAllowed)).toEqual([false, false, false, false])
})
