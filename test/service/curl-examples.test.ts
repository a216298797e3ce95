// The examples of docs/http-api.md, one after the other, as a reader would run them.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { AetheelClient } from '../../src/client/aetheel-client.js'
import { startHttpServer } from '../../src/service/server.js'
import { askNow } from '../approvals/ask-now.js'
import { BASH } from '../approvals/stage.js'
import { until } from '../kit/waiting.js'
import { steps } from '../kit/steps-agent.js'
import { Place, startService } from './routes/stage.js'

interface Example {
  script: string
  status: number
  /** What the document shows as its answer. */
  shown?: unknown
}

interface Answer {
  status: number
  text: string
}

const run = promisify(execFile)
const DOCUMENT = readFileSync(new URL('../../docs/http-api.md', import.meta.url), 'utf8')

it('answers every example of docs/http-api.md as the document says', async () => {
  const place = new Place()
  const dependencies = await startService(place)
  const server = await startHttpServer(dependencies)
  onTestFinished(() => server.close())
  const tokenFile = join(place.config.home, 'http-token')
  const client = new AetheelClient({ baseUrl: server.url, token: readFileSync(tokenFile, 'utf8') })
  const failing = await client.execute('site', { prompt: steps({ fail: 'Invalid API key' }) })
  await failing.finished()
  await client.execute('site', { prompt: steps({ hold: 'it' }) })
  const { approval } = await askNow(dependencies.gateway, BASH)
  let ruleId = ''
  const [beginning, ...examples] = readExamples()
  const answers: Array<{ script: string; status: number; differences: string[] }> = []
  let commandId = ''
  let conversationId = ''
  let runId = ''
  let fileId = ''
  let tokenId = ''
  for (const { script, shown } of examples) {
    const ready = `${beginning?.script}\n${script}`
      .replaceAll('~/.aetheel/http-token', tokenFile)
      .replaceAll('http://127.0.0.1:7433', server.url)
      .replaceAll('COMMAND_ID', commandId)
      .replaceAll('MESSAGE_ID', failing.id)
      .replaceAll('CONVERSATION_ID', conversationId)
      .replaceAll('RUN_ID', runId)
      .replaceAll('FILE_ID', fileId)
      .replaceAll('MADE_TOKEN', tokenId)
      .replaceAll('APPROVAL_ID', approval.id)
      .replaceAll('RULE_ID', ruleId)
    const { status, text } = await curl(ready)
    answers.push({ script, status, differences: shown === undefined ? [] : differences(shown, JSON.parse(text)) })
    if (status === 201 && script.includes('/files?')) fileId = idIn(text)
    else if (status === 201 && script.includes('/tokens')) tokenId = idIn(text)
    else if (status === 201 && script.includes('/conversations')) conversationId = idIn(text)
    if (script.includes('/approval-rules?'))
      ruleId = (JSON.parse(text) as { rules: { id: string }[] }).rules[0]?.id ?? ''
    // Some of what follows is about its end.
    if (status === 202 && script.includes('/conversations')) runId = await answered(client, conversationId)
    else if (status === 202) {
      commandId = (JSON.parse(text) as { command_id: string }).command_id
      await client.command('shop', commandId).finished()
    }
    if (script.includes('/retry')) await failing.finished()
  }
  expect(answers).toEqual(examples.map(({ script, status }) => ({ script, status, differences: [] })))
})

function idIn(answer: string): string {
  return (JSON.parse(answer) as { id: string }).id
}

/** The run that answered the latest message. */
async function answered(client: AetheelClient, conversationId: string): Promise<string> {
  return until(async () => {
    const [entry] = (await client.conversations.messages(conversationId)).entries
    return entry?.type === 'message' && entry.state === 'answered' && entry.runs[0]?.id
  }, 'an answer')
}

/** Each example, with its answer if that follows directly. */
function readExamples(): Example[] {
  const blocks = DOCUMENT.matchAll(/^```sh\n([^]*?)\n```$(?:\n\n```json\n([^]*?)\n```$)?/gm)
  return [...blocks].map(([, script = '', shown]) => ({
    script,
    status: Number(/^# (\d{3})\n/.exec(script)?.[1]),
    ...(shown !== undefined && { shown: JSON.parse(shown) as unknown }),
  }))
}

async function curl(script: string): Promise<Answer> {
  const prelude = `curl() { command curl --silent --show-error --max-time 60 --write-out '\\n%{http_code}' "$@"; }`
  const environment = { PATH: process.env['PATH'], NPM_TOKEN: 'npm_0123456789' }
  const { stdout } = await run('bash', ['-euc', `${prelude}\n${script}`], { env: environment })
  const end = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) }
}

/** What the document shows and the answer lacks, or has in another shape. */
function differences(shown: unknown, answer: unknown, path = ''): string[] {
  if (shown === null || answer === null) return []
  if (Array.isArray(shown)) {
    if (!Array.isArray(answer)) return [`${path}: no list`]
    return shown.length === 0 || answer.length === 0 ? [] : differences(shown[0], answer[0], `${path}[0]`)
  }
  if (typeof shown !== typeof answer) return [`${path}: ${typeof answer}`]
  if (typeof shown !== 'object') return []
  const given = answer as Record<string, unknown>
  return Object.entries(shown).flatMap(([key, value]) =>
    key in given ? differences(value, given[key], `${path}.${key}`) : [`${path}.${key}: missing`],
  )
}
