// One turn of an agent, judged by what the real CLIs printed.

import { expect, it } from 'vitest'
import type { AgentLogin, BackendName } from '../../../src/backends/types.js'
import { localTime } from '../../../src/core/local-time.js'
import { liveFinding } from '../../../src/cli/doctor/live-report.js'
import { createScrubber } from '../../../src/credentials/scrubber.js'
import { createPrintingBackend, NOW, type Printed } from '../../backends/fake-cli.js'
import { readCapture } from '../../backends/golden/captures.js'

const LOGGED_IN: AgentLogin = { state: 'logged-in', how: 'a key', fix: 'log in anew' }

it.each<[what: string, agent: BackendName, capture: string, text: string, details: unknown[]]>([
  ['an answer', 'claude', 'plain.ndjson', 'claude: answered by claude-opus-4-8[1m] in 0.0 s', []],
  ['an answer of a model that is not told', 'codex', 'plain.jsonl', 'codex: answered in 0.0 s', []],
  ['no login', 'claude', 'error-not-logged-in.json', 'claude: not logged in', ['Not logged in · Please run /login']],
  [
    'no login',
    'codex',
    'error-missing-key.jsonl',
    'codex: not logged in',
    ['Missing environment variable: `MOCK_KEY`.'],
  ],
  [
    'no login',
    'gemini',
    'error-missing-auth.stream-json.jsonl',
    'gemini: not logged in',
    ['When using Gemini API, you must specify the GEMINI_API_KEY environment variable.'],
  ],
  ['no login', 'pi', 'error-no-key.ndjson', 'pi: not logged in', ['No API key found for anthropic.']],
  [
    'a refused key',
    'claude',
    'error-401-noretry.json',
    'claude: its key or login was refused',
    ['Invalid API key · Fix external API key'],
  ],
  [
    'a refused key',
    'codex',
    'error-401.jsonl',
    'codex: its key or login was refused',
    [expect.stringMatching(/^unexpected status 401/)],
  ],
  [
    'a refused key',
    'gemini',
    'error-400-key.stream-json.jsonl',
    'gemini: its key or login was refused',
    ['[API Error: API key not valid. Please pass a valid API key.]'],
  ],
  [
    'a refused key',
    'opencode',
    'run-error-401.stdout.jsonl',
    'opencode: its key or login was refused',
    [expect.any(String)],
  ],
  ['a refused key', 'pi', 'error-401.ndjson', 'pi: its key or login was refused', [expect.stringMatching(/^401/)]],
])('%s: %s, %s', async (_what, agent, capture, text, details) => {
  const mark = text.includes('answered') ? '✓' : '✗'
  const advice = mark === '✓' ? [] : ['Run: log in anew']
  expect(await findingOf(agent, readCapture(agent, capture))).toEqual({ mark, text, details: [...details, ...advice] })
})

it.each<[what: string, agent: BackendName, capture: string, text: string, details: unknown[]]>([
  [
    'a quota that is used up',
    'codex',
    'error-429-quota.jsonl',
    'codex: its quota is used up',
    ['Quota exceeded. Check your plan and billing details.', 'Wait, or choose another agent.'],
  ],
  [
    'an unknown model',
    'claude',
    'error-unknown-model.json',
    'claude: its model is unknown, or not available to this login',
    [expect.stringMatching(/^There's an issue with the selected model/), expect.stringMatching(/^Set another/)],
  ],
  ['anything else', 'opencode', 'run-error-e500.stdout.jsonl', 'opencode: mock internal failure', []],
])('%s: %s, %s', async (_what, agent, capture, text, details) => {
  expect(await findingOf(agent, readCapture(agent, capture))).toEqual({ mark: '✗', text, details })
})

it('tells until when a limit holds', async () => {
  const result = { type: 'result', is_error: true, result: 'You have hit your limit · resets 3pm' }
  const { text } = await findingOf('claude', { stdout: JSON.stringify(result), exit: 1 })
  const until = new Date(NOW).setHours(15)
  expect(text).toBe(`claude: its quota is used up until ${localTime(until, NOW)}`)
})

it('calls an agent that is surely logged out so, whatever its model says', async () => {
  const finding = await findingOf('codex', readCapture('codex', 'error-401.jsonl'), {
    state: 'logged-out',
    fix: 'codex login',
  })
  expect([finding.text, finding.details.at(-1)]).toEqual(['codex: not logged in', 'Run: codex login'])
})

it('counts a tool call as an answer: its model has worked', async () => {
  const { mark } = await findingOf('claude', readCapture('claude', 'max-turns.ndjson'))
  expect(mark).toBe('✓')
})

it('hides a secret that the agent repeats', async () => {
  const result = { type: 'result', is_error: true, api_error_status: 401, result: 'The key sk-0123456789 is wrong' }
  const printed = { stdout: JSON.stringify(result), exit: 1 }
  const scrubber = createScrubber()
  scrubber.add(['sk-0123456789'])
  expect((await findingOf('claude', printed, LOGGED_IN, scrubber)).details[0]).not.toContain('sk-0123456789')
})

function findingOf(agent: BackendName, printed: Printed, login = LOGGED_IN, scrubber = createScrubber()) {
  const backend = createPrintingBackend(agent, printed)
  const probe = { isFound: true, problems: [], login }
  const { signal } = new AbortController()
  return liveFinding({ backend, probe }, { request: {}, scrubber, signal, now: () => NOW })
}
