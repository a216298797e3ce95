import { expect, it, onTestFinished } from 'vitest'
import { PlainChat, PlainChatView } from '../../../src/cli/chat/plain-chat.js'
import { ChatSession } from '../../../src/cli/chat-session.js'
import type { Control, OpenQuestion } from '../../../src/cli/control/protocol.js'
import { GatewayError } from '../../../src/errors.js'
import { until } from '../../kit/waiting.js'

const QUESTION: OpenQuestion = {
  ...{ id: 'q', messageId: 'm', backend: 'claude', toolName: 'Bash', summary: 'Bash: date -d "13:50 UTC"' },
  ...{ request: 'date -d "13:50 UTC"', remembers: 'call', deadline: Date.now() + 600_000 },
}

/** A chat whose clock moves only when told to. The gateway refuses the first answer. */
async function setup() {
  const clock = { now: Date.now() }
  const calls: { method: string; parameters: unknown }[] = []
  let printed = ''
  const output = { write: (text: string) => (printed += text) !== '' }
  const view = new PlainChatView(output, output, 100, () => clock.now)
  const address = 'default'
  const session = new ChatSession({
    ...{ address, author: 'ada', view, refusesQuestions: false, connect: async () => undefined },
  })
  let answers = 0
  const call = async (method: string, parameters: unknown): Promise<unknown> => {
    if (method === 'chat.questions') return { questions: [QUESTION] }
    if (method === 'chat.history') return { entries: [] }
    if (method === 'chat.send') calls.push({ method, parameters })
    if (method === 'approvals.answer') {
      calls.push({ method, parameters })
      answers += 1
      if (answers === 1) throw new GatewayError('store_unavailable', 'The database does not answer.')
    }
    return { status: 'accepted', messageId: 'm2', conversationId: 'c', position: 0, notes: [] }
  }
  const control = { call, closed: new Promise(() => {}), close: async () => {} } as unknown as Control
  await session.begin(control, 0)
  onTestFinished(async () => {
    view.questions.stop()
    await session.close()
  })
  const chat = new PlainChat(view, session)
  return {
    clock,
    calls,
    take: (text: string) => chat.take(text),
    shows: (expected: RegExp) =>
      until(
        () => expected.test(printed),
        () => printed,
      ),
  }
}

it('shows a question as it is, and takes a letter for an answer once it can be read, until it has worked', async () => {
  const { clock, calls, take, shows } = await setup()
  await shows(/\? claude wants to use Bash\n {2}│ date -d "13:50 UTC"\n/)
  await take('y')
  await shows(/! The question has only just appeared\. Answer it again\.\n/)
  clock.now += 1_000
  await shows(/\ny allow · a always exactly this · n deny · d deny with a reason · expires in 10 minutes\n/)
  await take('yes, and then?')
  await take('Y')
  await shows(/Error: The database does not answer\.\n[^]*\? claude wants/)
  clock.now += 1_000
  await take('d')
  await shows(/\nReason:\n$/)
  await take('  Not today.\n')
  expect(calls).toEqual([
    { method: 'chat.send', parameters: expect.objectContaining({ text: 'yes, and then?' }) },
    { method: 'approvals.answer', parameters: { id: 'q', decision: 'allow' } },
    { method: 'approvals.answer', parameters: { id: 'q', decision: 'deny', message: 'Not today.' } },
  ])
})
