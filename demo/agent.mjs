#!/usr/bin/env node
// A demo agent. It speaks the wire format of Claude Code (`--output-format stream-json`) without a model: one process per
// message or, with `--input-format stream-json`, one for many. Its commands and edits are real, it asks for permission
// when told to, and it remembers in a session what it was told.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** The only file it ever changes. */
const NOTES = 'aetheel-demo.txt'

const args = process.argv.slice(2)
if (args.includes('--version')) {
  console.log('2.1.197 (demo agent)')
  process.exit()
}

const sessions = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'aetheel-demo')
const resumed = optionOf('--resume')
const sessionId = resumed ?? randomUUID()
const sessionFile = join(sessions, `${sessionId}.json`)
const isAsking = args.includes('--permission-prompt-tool')
const offered = optionOf('--tools')?.split(',')
const print = (line) => console.log(JSON.stringify({ ...line, session_id: sessionId }))

/** Resolvers of pending questions for permission, by id. */
const questions = new Map()
let interrupted = new AbortController()

if (resumed && !existsSync(sessionFile)) {
  const errors = [`No conversation found with session ID: ${resumed}`]
  print({ type: 'result', subtype: 'error_during_execution', is_error: true, errors })
  process.exit(1)
}
const memory = resumed ? JSON.parse(readFileSync(sessionFile, 'utf8')) : {}

if (optionOf('--input-format') === 'stream-json') await stay()
else await turn(await text(process.stdin))

function optionOf(name) {
  return args.includes(name) ? args[args.indexOf(name) + 1] : undefined
}

/** Takes messages until its input ends. */
async function stay() {
  let turns = Promise.resolve()
  for await (const line of createInterface({ input: process.stdin })) {
    const { type, message, request, request_id: id, response } = JSON.parse(line)
    if (type === 'user') turns = turns.then(() => turn(message.content))
    if (type === 'control_response') questions.get(response.request_id)?.(response.response)
    if (type !== 'control_request') continue
    if (request.subtype === 'interrupt') interrupted.abort()
    print({ type: 'control_response', response: { subtype: 'success', request_id: id } })
  }
  process.exit()
}

async function turn(prompt) {
  interrupted = new AbortController()
  print({
    type: 'system',
    subtype: 'init',
    cwd: process.cwd(),
    model: 'demonstration',
    tools: ['Bash', 'Write', 'Edit'],
  })
  try {
    const result = await answer(prompt)
    const usage = { input_tokens: prompt.length, output_tokens: result.length }
    print({ type: 'result', subtype: 'success', is_error: false, result, num_turns: 1, total_cost_usd: 0, usage })
  } catch (error) {
    if (error.name !== 'AbortError') throw error
    print({ type: 'result', subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_streaming' })
  }
}

/** Contract: rejects with an AbortError if interrupted. */
async function answer(prompt) {
  const name = /my name is (\p{L}+)/iu.exec(prompt)?.[1]
  if (name) memory.name = name
  remember()
  if (/count to ten/i.test(prompt)) return count()
  if (/\b(edit|change|write)\b.*\bfile\b/is.test(prompt)) return say(await edit())
  if (/file/i.test(prompt)) {
    await say(`${name ? `Hello ${name}. ` : ''}Let me look.`)
    return say(await list())
  }
  if (/\bname\b/i.test(prompt)) {
    return say(
      memory.name ? `Your name is ${memory.name}; you told me earlier in this session.` : 'I do not know it yet.',
    )
  }
  return say(explanation(prompt), 12)
}

function explanation(prompt) {
  const [line = ''] = prompt.trim().split('\n')
  const heard = line.length > 80 ? `${line.slice(0, 80)}…` : line
  return `You wrote: "${heard}". I am the demo agent: there is no model behind me, so I cannot think about it. The rest is real: how your message got here, and what I do. Try one of these:

- \`which files are here?\` I run a command.
- \`edit a file\`: I change ${NOTES} here, and you see the diff.
- \`my name is Ada\`, then \`what is my name?\`: I remember it in this session.
- \`count to ten\`: stop me or kill the gateway, and I continue where I stopped.

To talk to a real agent, install one and choose it with \`aetheel init\`.`
}

async function list() {
  const { output, problem } = await use('Bash', { command: 'ls' }, () => run('ls'))
  if (problem !== undefined) return `I did not look: ${problem}`
  const files = output.split('\n').filter((name) => name !== '')
  const [first, ...others] = files
  if (first === undefined) return 'There is nothing here yet. I asked a real shell.'
  const found = others.length === 0 ? `one file here, ${first}` : `${files.length} files here: ${files.join(', ')}`
  return `There ${others.length === 0 ? 'is' : 'are'} ${found}. I asked a real shell.`
}

/** Writes the file the first time, then changes a line of it. */
async function edit() {
  const path = join(process.cwd(), NOTES)
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const count = Number(/Changes so far: (\d+)\./.exec(before ?? '')?.[1] ?? 0)
  const [old, next] = [`Changes so far: ${count}.`, `Changes so far: ${count + 1}.`]
  const isKnown = before?.includes(old)
  const content = isKnown ? before.replace(old, next) : `Written by Aetheel's demo agent.\n${old}\n`
  const input = isKnown ? { old_string: old, new_string: next } : { content }
  const { problem } = await use(isKnown ? 'Edit' : 'Write', { file_path: path, ...input }, () => {
    writeFileSync(path, content)
    return `The file ${path} has been written.`
  })
  if (problem !== undefined) return `I have changed nothing: ${problem}`
  return `I have ${isKnown ? 'changed a line of' : 'written'} ${NOTES}. You can delete it; ask again to see another change.`
}

/** Written completely or not at all, even if killed meanwhile. */
function remember() {
  mkdirSync(sessions, { recursive: true, mode: 0o700 })
  writeFileSync(`${sessionFile}.new`, JSON.stringify(memory))
  renameSync(`${sessionFile}.new`, sessionFile)
}

/** Slow work that can be interrupted: its progress is kept in the session. */
async function count() {
  const numbers = 'one two three four five six seven eight nine ten'.split(' ')
  const counted = memory.counted ?? 0
  const beginning = counted > 0 ? `I was interrupted at ${numbers[counted - 1]}, so I continue:` : 'Counting:'
  const sentence = `${beginning} ${numbers.slice(counted).join(', ')}.`
  return say(sentence, 150, (word) => {
    const index = numbers.indexOf(word.replaceAll(/\W/g, ''))
    if (index < counted) return
    memory.counted = (index + 1) % numbers.length
    remember()
  })
}

async function say(sentence, pauseMs = 40, onWord = () => {}) {
  const id = `msg_${randomUUID()}`
  print({ type: 'stream_event', event: { type: 'message_start', message: { id } } })
  for (const word of sentence.match(/\S+\s*/g)) {
    print({ type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta', text: word } } })
    onWord(word)
    await sleep(pauseMs, undefined, { signal: interrupted.signal })
  }
  print({ type: 'assistant', message: { id, content: [{ type: 'text', text: sentence }] } })
  return sentence
}

/** A tool call, with permission if required. Returns its output, or the problem as a sentence. */
async function use(name, input, act) {
  if (offered && !offered.includes(name)) return { problem: `I am not allowed to use the tool ${name} here.` }
  const id = `toolu_${randomUUID()}`
  print({ type: 'assistant', message: { content: [{ type: 'tool_use', id, name, input }] } })
  const problem = isAsking ? await ask(name, input) : undefined
  let result = { problem }
  try {
    if (problem === undefined) result = { output: act() }
  } catch (error) {
    result = { problem: error.message }
  }
  const content = result.output ?? result.problem
  const is_error = result.problem !== undefined
  print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content, is_error }] } })
  return result
}

/** Returns why it is not allowed; undefined if it is. */
async function ask(tool_name, input) {
  const request_id = randomUUID()
  print({ type: 'control_request', request_id, request: { subtype: 'can_use_tool', tool_name, input } })
  const { behavior, message } = await new Promise((resolve, reject) => {
    questions.set(request_id, (response) => resolve(response ?? { message: 'Nobody could be asked.' }))
    interrupted.signal.addEventListener('abort', () => {
      print({ type: 'control_cancel_request', request_id })
      reject(interrupted.signal.reason)
    })
  })
  questions.delete(request_id)
  return behavior === 'allow' ? undefined : message
}

function run(command) {
  return execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim()
}
