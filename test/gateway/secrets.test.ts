// The doors at which known secrets are hidden, in a whole gateway. Those of HTTP are in test/service/routes.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { GLOBAL_OWNER } from '../../src/credentials/credential-store.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { databaseFile, makeHome, startGateway } from '../../src/gateway.js'
import { createLog } from '../../src/log.js'
import { putDatabase } from '../kit/put-database.js'
import { until } from '../kit/waiting.js'
import { Stage, TestChannel } from '../kit/stage.js'

const SECRET = 'sk-known-0123456789'

/** Leaks its credential wherever it can: when it asks, in its tool, in its text, in its answer, and when it fails. */
const LEAKING_AGENT = `#!/usr/bin/env node
import { createInterface } from 'node:readline'
if (process.argv.includes('--version')) {
  console.log('2.1.197 (Claude Code)')
  process.exit()
}
const { TOKEN } = process.env
const session_id = '0a1b2c3d-0000-4000-8000-000000000001'
const print = (line) => console.log(JSON.stringify({ session_id, ...line }))
const end = (about) => print({ type: 'result', subtype: 'success', num_turns: 1, total_cost_usd: 0, modelUsage: {}, ...about })
for await (const line of createInterface({ input: process.stdin })) {
  const { type, request_id, message } = JSON.parse(line)
  if (type === 'control_request') print({ type: 'control_response', response: { subtype: 'success', request_id } })
  else if (type === 'control_response') end({ is_error: false, result: 'It is ' + TOKEN })
  else {
    const input = { command: 'curl -H ' + TOKEN }
    const content = [{ type: 'text', text: 'Now with ' + TOKEN }, { type: 'tool_use', id: '1', name: 'Bash', input }]
    print({ type: 'system', subtype: 'init', model: 'm', tools: ['Bash'] })
    print({ type: 'assistant', message: { id: 'm1', content } })
    if (JSON.stringify(message).includes('fail')) end({ is_error: true, result: 'Invalid API key ' + TOKEN })
    else print({ type: 'control_request', request_id: 'ask', request: { subtype: 'can_use_tool', tool_name: 'Bash', input } })
  }
}
`

test('no known secret leaves a gateway or is stored', async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished)
  const told = join(stage.directory, 'told')
  const hooks = [{ on: ['error'], command: ['sh', '-c', `cat >> ${told}`] }]
  const variables = { BACKEND_CLI_PATH: stage.executable('claude', LEAKING_AGENT), AGENT_PERMISSIONS: 'ask' }
  const config = stage.config(variables, { hooks })
  makeHome(config)
  putDatabase({ file: databaseFile(config), databaseUrl: config.databaseUrl })
  const scrubber = createScrubber()
  const logged: string[] = []
  const log = createLog({ scrubber, destination: { write: (line) => logged.push(String(line)) > 0 } })
  const channel = new TestChannel()
  const { environment } = stage
  const gateway = await startGateway(config, { environment, log, channels: [channel], scrubber })
  onTestFinished(() => gateway.stop())
  await gateway.credentials.set(GLOBAL_OWNER, 'TOKEN', SECRET, 'variable')

  await channel.say('a', `Use ${SECRET}`)
  await until(() => channel.replies.find(({ question }) => question), 'the question')
  await channel.command('a', '/approve')
  await until(() => channel.texts().includes('It is [secret]'), 'the answer')
  await channel.say('b', 'fail')
  await until(() => channel.replies.find(({ isError }) => isError), 'the failure')
  log.warn('test.line', { error: `401 for ${SECRET}` })
  const runs = await gateway.store.runs.list(9)
  const events = await Promise.all(runs.map(({ id }) => gateway.store.events.list(id)))
  const approvals = await gateway.store.approvals.list({}, 9)
  await gateway.stop()

  const texts = {
    'events shown': JSON.stringify(channel.shown),
    'events stored': JSON.stringify(events),
    replies: JSON.stringify(channel.replies),
    'results and errors of runs': JSON.stringify(runs),
    approvals: JSON.stringify(approvals),
    'log lines': logged.join(''),
    hooks: readFileSync(told, 'utf8'),
    archive: archivedText(join(config.home, 'archive')),
  }
  const found = Object.entries(texts).map(([where, text]) => [where, text.includes(SECRET), text.includes('[secret]')])
  expect(found).toEqual(Object.keys(texts).map((where) => [where, false, true]))
})

function archivedText(directory: string): string {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name))
  return paths.flatMap((path) => (statSync(path).isFile() ? [readFileSync(path, 'utf8')] : [])).join('\n')
}
