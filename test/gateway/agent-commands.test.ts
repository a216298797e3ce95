// `/compact`, and `//name`, through a whole gateway.

import { describe, it, type TestContext } from 'vitest'
import { Stage } from '../kit/stage.js'
import { until } from '../kit/waiting.js'

/** Answers with its prompt, to the character; to /compact with nothing, as Claude Code does. */
const AGENT = `#!/usr/bin/env node
import { text } from 'node:stream/consumers'
const prompt = await text(process.stdin)
const result = prompt.startsWith('/compact') ? '' : prompt
console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: '6488a900-9deb-456e-98ea-de230d1950c5', result }))
`

async function open(onTestFinished: TestContext['onTestFinished'], variables: Record<string, string> = {}) {
  const stage = new Stage(onTestFinished)
  const BACKEND_CLI_PATH = stage.executable('agent', AGENT)
  const running = await stage.start({ BACKEND_CLI_PATH, ...variables })
  return {
    ...running,
    ask: async (text: string): Promise<string> => {
      const { channel } = running
      const before = channel.replies.length
      await channel.say('a', text)
      return (await until(() => channel.replies[before], text)).text
    },
  }
}

describe.concurrent("a command of the agent's own", () => {
  it('reaches it as one, while other prompts with a slash do not', async ({ expect, onTestFinished }) => {
    const { ask, channel, gateway } = await open(onTestFinished)
    const answers = []
    for (const line of [
      '//review src //all',
      '/etc/hosts is empty',
      '//',
      '// TODO',
      '/compact keep names',
      '/Compact',
    ])
      answers.push(await ask(line))
    const isCommand = ['/compact', '//x', '/compacted'].map((line) => channel.host().isCommand(line))
    // A program's prompt reaches the agent as it is.
    await channel.host().onMessage({
      ...{ address: 'b', platformId: 'http', author: 'ci', text: '//review' },
      options: { streamId: 's' },
    })
    const ofProgram = await until(() => channel.replies.find(({ address }) => address === 'b'), 'the answer')
    expect([answers, isCommand, ofProgram.text, (await gateway.store.inbox.listFailed(9)).length]).toEqual([
      // Claude Code takes no command after a blank.
      [
        '/review src //all',
        ' /etc/hosts is empty',
        ' //',
        ' // TODO',
        'claude ran /compact keep names.',
        'claude ran /compact.',
      ],
      [false, false, true],
      ' //review',
      0,
    ])
  })

  it('is not passed on where it could lift limits, except /compact', async ({ expect, onTestFinished }) => {
    const { ask } = await open(onTestFinished, { ALLOWED_TOOLS: 'Read' })
    const before = await ask('/compact')
    await ask('Hello')
    const refused =
      "/review was not passed on, because an agent's own commands could bypass the limits of this project. They need an agent that may use all tools without asking, a trusted project and no command template."
    expect([before, await ask('//review it'), await ask('/compact')]).toEqual([
      'There is nothing to compact: no session has started here.',
      refused,
      'claude ran /compact.',
    ])
  })

  it('is answered by the gateway for agents that have none', async ({ expect, onTestFinished }) => {
    const codex = await open(onTestFinished, { AGENT_BACKEND: 'codex' })
    const gemini = await open(onTestFinished, { AGENT_BACKEND: 'gemini' })
    expect([await codex.ask('//review it'), await gemini.ask('/compact')]).toEqual([
      'codex does not accept commands in messages, so /review was not passed on.',
      'gemini does not support /compact: it compacts long conversations itself. Use /new to start a fresh session.',
    ])
  })
})
