#!/usr/bin/env node
// An agent that speaks Claude Code's wire format and does what the message says. A message containing a line of JSON is
// a list of steps; any other is echoed.
//
//   {"text": "…", "times": 1}        writes, as deltas of some words
//   {"drip": "…", "everyMs": 20}     writes word by word, with pauses
//   {"tool": "Bash", "input": {…}}   uses a tool and gets its result; with "hold", once released
//   {"hold": "name"}       waits for the file `go-name` in the working directory
//   {"file": "name", "content": "…"} writes a file
//   {"run": ["sleep", "1000"]}       leaves a process behind, in its own session
//   {"fail": "message", "unless": "name"}   ends with an error, unless the file `go-name` exists
//   {"result": "…"}        the final text; by default all texts together
//
// The session is a file in the working directory, and `journal` records the prompts.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

const args = process.argv.slice(2)
if (args.includes('--version')) {
  console.log('2.1.197 (Discord test)')
  process.exit()
}
process.stdout.on('error', () => {})

const prompt = await text(process.stdin)
const resumed = args.includes('--resume') ? args[args.indexOf('--resume') + 1] : undefined
const sessionId = resumed ?? randomUUID()
const print = (line) => process.stdout.write(`${JSON.stringify({ ...line, session_id: sessionId })}\n`)

if (resumed && !existsSync(`session-${resumed}`)) {
  const errors = [`No conversation found with session ID: ${resumed}`]
  print({ type: 'result', subtype: 'error_during_execution', is_error: true, errors })
  process.exit(1)
}
writeFileSync(`session-${sessionId}`, '')
const model = args.includes('--model') ? args[args.indexOf('--model') + 1] : 'none'
const tools = args.includes('--tools') ? args[args.indexOf('--tools') + 1] : undefined
appendFileSync('journal', `${JSON.stringify({ prompt, sessionId, isResumed: resumed !== undefined, model, tools })}\n`)
print({ type: 'system', subtype: 'init', cwd: process.cwd(), model, tools: ['Bash'] })

const written = []
let result
for (const step of stepsOf(prompt)) await perform(step)
print({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: result ?? written.join(''),
  num_turns: 1,
  total_cost_usd: 0.25,
  usage: { input_tokens: 100, output_tokens: 20 },
})

function stepsOf(asked) {
  const line = asked.split('\n').find((candidate) => candidate.startsWith('[{'))
  try {
    return JSON.parse(line)
  } catch {
    return [{ text: `You said: ${asked}` }]
  }
}

async function perform(step) {
  if (step.text !== undefined) say(step.text.repeat(step.times ?? 1))
  if (step.drip !== undefined) await drip(step.drip, step.everyMs)
  const toolId = step.tool === undefined ? undefined : useTool(step.tool, step.input ?? {})
  if (step.hold !== undefined) while (!existsSync(`go-${step.hold}`)) await sleep(10)
  if (toolId) endTool(toolId)
  if (step.file !== undefined) writeFileSync(step.file, step.content)
  if (step.run !== undefined) spawn(step.run[0], step.run.slice(1), { detached: true, stdio: 'ignore' }).unref()
  if (step.result !== undefined) result = step.result
  if (step.fail !== undefined && !(step.unless && existsSync(`go-${step.unless}`))) {
    print({ type: 'result', subtype: 'error_during_execution', is_error: true, result: step.fail })
    process.exit(1)
  }
}

function say(words) {
  const id = begin()
  for (const delta of deltasOf(words)) write(delta)
  end(id, words)
}

async function drip(words, everyMs) {
  const id = begin()
  for (const delta of deltasOf(words)) {
    write(delta)
    await sleep(everyMs)
  }
  end(id, words)
}

function deltasOf(words) {
  return words.match(/\S*\s*/g).filter(Boolean)
}

function begin() {
  const id = `msg_${randomUUID()}`
  print({ type: 'stream_event', event: { type: 'message_start', message: { id } } })
  return id
}

function write(text) {
  print({ type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta', text } } })
}

function end(id, words) {
  print({ type: 'assistant', message: { id, content: [{ type: 'text', text: words }] } })
  written.push(words)
}

function useTool(name, input) {
  const id = `toolu_${randomUUID()}`
  print({ type: 'assistant', message: { id: `msg_${id}`, content: [{ type: 'tool_use', id, name, input }] } })
  return id
}

function endTool(id) {
  print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content: 'done' }] } })
}
