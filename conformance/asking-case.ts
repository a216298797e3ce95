/** An agent that asks before it uses a tool, and obeys the answer. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import type { ApprovalRequest, Approve } from '../src/backends/types.js'
import { cannot, type Case } from './case.js'
import { continuationOf, lastUserText, textOf } from './checks.js'
import { callShell, say } from './model-replies.js'

const answer = 'Done, said by the scripted model.'

export const asks: Case = {
  name: 'asks',
  title: 'Asks before a tool',
  async run({ agent, expected, open }) {
    const commandOf = (prompt: string) => `touch made-when-${prompt}`
    const stage = await open((request) =>
      request.messages.at(-1)?.role === 'tool'
        ? say(answer)
        : callShell(agent, commandOf(lastUserText(request).trim())),
    )
    const asked: ApprovalRequest[] = []
    const allow: Approve = async (request) => {
      asked.push(request)
      return { isAllowed: true }
    }
    const deny: Approve = async (request) => {
      asked.push(request)
      return { isAllowed: false, message: 'Not today.' }
    }
    const first = await stage.ask({ prompt: 'allowed', approve: allow })
    if (expected.neverAsks) {
      assert.deepEqual([first.result.failure?.reason, stage.model.requests.length], ['refused', 0])
      return `${cannot}its protocol has nothing for it; refused`
    }
    const second = await stage.ask({ prompt: 'denied', approve: deny, ...continuationOf(first) })
    assert.deepEqual([first, second].map(textOf), [answer, answer])
    const { toolName } = expected.shell
    assert.deepEqual(
      asked.map((request) => [request.toolName, request.toolInput['command']]),
      ['allowed', 'denied'].map((prompt) => [toolName, commandOf(prompt)]),
    )
    assert.deepEqual(await readdir(stage.sandbox.workspace), ['made-when-allowed'])
    const [refused] = second.events.filter((event) => event.type === 'tool_result')
    assert.ok(refused?.isError && refused.content.includes('Not today.'), 'the tool has failed, and it is told why')
    return 'asked once for each; allowed it ran, denied it did not, and the turn went on'
  },
}
