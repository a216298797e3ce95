#!/usr/bin/env node
// An agent in the wire format of Claude Code, one-shot or warm. It writes in steps, keeps its session in a file,
// starts a tool in its own process session that never exits, and keeps a journal of its prompts.
// It finishes a message that ends in `hold` only when the file `go-all` or `go-<its owner>` exists.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

const STEP_MS = 20

const args = process.argv.slice(2)
if (args.includes('--version')) {
  console.log('2.1.197 (crash test)')
  process.exit()
}
// It keeps working when nobody reads its output, as agents do: something has to end it.
process.stdout.on('error', () => {})

const ownerId = process.env.AETHEEL_OWNER_ID
const resumed = args.includes('--resume') ? args[args.indexOf('--resume') + 1] : undefined
const sessionId = resumed ?? randomUUID()
const sessionFile = `session-${sessionId}`
const print = (line) => process.stdout.write(`${JSON.stringify({ ...line, session_id: sessionId })}\n`)

if (resumed && !existsSync(sessionFile)) {
  const errors = [`No conversation found with session ID: ${resumed}`]
  print({ type: 'result', subtype: 'error_during_execution', is_error: true, errors })
  process.exit(1)
}

spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref()

if (args.includes('--input-format')) await stayWarm()
else {
  const prompt = await text(process.stdin)
  // The gateway died before it sent the prompt.
  if (prompt === '') process.exit(1)
  await take(prompt)
}

async function stayWarm() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { type, request_id, message } = JSON.parse(line)
    if (type === 'user') await take(message.content)
    else print({ type: 'control_response', response: { subtype: 'success', request_id } })
  }
}

async function take(prompt) {
  const [message = '', name = '', hold] = /(\S+)( hold)?$/.exec(prompt) ?? []
  const lastPid = readIfThere(`${sessionFile}.pid`)
  const isAlone = lastPid === String(process.pid) || !isAlive(lastPid)
  writeFileSync(`${sessionFile}.pid`, String(process.pid))
  const heard = readIfThere(sessionFile).split('\n').filter(Boolean)
  appendFileSync(sessionFile, `${name}\n`)
  const entry = {
    name,
    sessionId,
    isResumed: resumed !== undefined,
    isTold: prompt !== message,
    isAlone,
    heard,
    ownerId,
  }
  appendFileSync('journal', `${JSON.stringify(entry)}\n`)

  print({ type: 'system', subtype: 'init', cwd: process.cwd(), model: 'none', tools: ['Bash'] })
  const id = `msg_${randomUUID()}`
  print({ type: 'stream_event', event: { type: 'message_start', message: { id } } })
  const words = ['This ', 'answers ', name]
  for (const word of words) {
    print({ type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta', text: word } } })
    if (hold) await permission()
    await sleep(STEP_MS)
  }
  print({ type: 'assistant', message: { id, content: [{ type: 'text', text: words.join('') }] } })
  print({ type: 'result', subtype: 'success', is_error: false, result: words.join(''), num_turns: 1 })
}

async function permission() {
  while (!existsSync('go-all') && !existsSync(`go-${ownerId}`)) await sleep(STEP_MS)
}

function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** A zombie has no command line. */
function isAlive(pid) {
  return pid !== '' && readIfThere(`/proc/${pid}/cmdline`).includes('agent.mjs')
}
