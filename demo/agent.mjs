#!/usr/bin/env node
// A demonstration agent. It speaks the wire format of Claude Code (`--output-format stream-json`) without a model
// behind it: it lists the working directory with a real command and remembers what it was told in a session.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

const args = process.argv.slice(2)
if (args.includes('--version')) {
  console.log('2.1.197 (demonstration agent)')
  process.exit()
}

const resumed = args.includes('--resume') ? args[args.indexOf('--resume') + 1] : undefined
const sessionId = resumed ?? randomUUID()
const sessionFile = `.demo-session-${sessionId}.json`
const print = (line) => console.log(JSON.stringify({ ...line, session_id: sessionId }))

if (resumed && !existsSync(sessionFile)) {
  const errors = [`No conversation found with session ID: ${resumed}`]
  print({ type: 'result', subtype: 'error_during_execution', is_error: true, errors })
  process.exit(1)
}

const prompt = await text(process.stdin)
const memory = resumed ? JSON.parse(readFileSync(sessionFile, 'utf8')) : {}
print({ type: 'system', subtype: 'init', cwd: process.cwd(), model: 'demonstration', tools: ['Bash'] })

const name = /my name is (\p{L}+)/iu.exec(prompt)?.[1]
if (name) memory.name = name
remember()

let answer = memory.name ? `Your name is ${memory.name}; you told me earlier in this session.` : 'I do not know it yet.'
if (/count to ten/i.test(prompt)) {
  answer = await count()
} else {
  if (/file/i.test(prompt)) {
    await say(`${name ? `Hello ${name}. ` : ''}Let me look.`)
    const files = runTool('ls').split('\n')
    answer = `There are ${files.length} files here, ${files.join(' and ')}. I asked a real shell.`
  }
  await say(answer)
}
print({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: answer,
  num_turns: 1,
  total_cost_usd: 0,
  usage: { input_tokens: prompt.length, output_tokens: answer.length },
})

/** Whole or not at all, even if it is killed meanwhile. */
function remember() {
  writeFileSync(`${sessionFile}.new`, JSON.stringify(memory))
  renameSync(`${sessionFile}.new`, sessionFile)
}

/** Slow work that can be cut off: how far it came stands in the session. */
async function count() {
  const numbers = 'one two three four five six seven eight nine ten'.split(' ')
  const counted = memory.counted ?? 0
  const beginning = counted > 0 ? `I was cut off at ${numbers[counted - 1]}, so I go on:` : 'I count:'
  const sentence = `${beginning} ${numbers.slice(counted).join(', ')}.`
  await say(sentence, 150, (word) => {
    const index = numbers.indexOf(word.replaceAll(/\W/g, ''))
    if (index < counted) return
    memory.counted = (index + 1) % numbers.length
    remember()
  })
  return sentence
}

async function say(sentence, pauseMs = 40, onWord = () => {}) {
  const id = `msg_${randomUUID()}`
  print({ type: 'stream_event', event: { type: 'message_start', message: { id } } })
  for (const word of sentence.match(/\S+\s*/g)) {
    print({ type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta', text: word } } })
    onWord(word)
    await sleep(pauseMs)
  }
  print({ type: 'assistant', message: { id, content: [{ type: 'text', text: sentence }] } })
}

function runTool(command) {
  const id = `toolu_${randomUUID()}`
  print({ type: 'assistant', message: { content: [{ type: 'tool_use', id, name: 'Bash', input: { command } }] } })
  const output = execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim()
  print({
    type: 'user',
    message: { content: [{ type: 'tool_result', tool_use_id: id, content: output, is_error: false }] },
  })
  return output
}
