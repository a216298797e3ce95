#!/usr/bin/env node
// A warm agent in Claude Code's wire format that asks before it uses its tool. Told to do it twice, it asks again right
// after the first answer, before the page has reloaded the open questions.

import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'

if (process.argv.includes('--version')) {
  console.log('2.1.197 (browser test)')
  process.exit()
}
const at = process.argv.indexOf('--resume')
const sessionId = at < 0 ? randomUUID() : process.argv[at + 1]
const print = (line) => console.log(JSON.stringify({ session_id: sessionId, ...line }))
const ask = (requestId, input) =>
  print({
    type: 'control_request',
    request_id: requestId,
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input },
  })
let isTwice = false
const input = { command: 'npm install', description: 'Installs what the project needs' }

for await (const line of createInterface({ input: process.stdin })) {
  const { type, request_id: requestId, request, response } = JSON.parse(line)
  if (type === 'control_request') {
    print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } })
    if (request.subtype === 'interrupt') print({ type: 'result', subtype: 'error_during_execution', is_error: true })
  } else if (type === 'user') {
    print({ type: 'system', subtype: 'init', model: 'asker', tools: ['Bash'] })
    isTwice = line.includes('twice')
    ask('ask', input)
  } else if (isTwice) {
    isTwice = false
    setTimeout(ask, 150, 'ask', { ...input, command: 'npm test' })
  } else if (response.request_id === 'ask') {
    const { behavior, message } = response.response
    const result = behavior === 'allow' ? 'It is installed.' : `I may not: ${message}`
    print({
      type: 'result',
      subtype: 'success',
      is_error: false,
      result,
      num_turns: 1,
      total_cost_usd: 0.01,
      modelUsage: {},
    })
  }
}
