// Input that could act as an option or a path never reaches a command line.

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type AgentResult, BACKEND_NAMES, type BackendName } from '../../../src/backends/types.js'
import { createFakeBackend, createStage, PRINTER, runTurn } from '../fake-cli.js'

// If this CLI were started, it would fail and there would be an exit code.
const createUnstarted = (name: BackendName) => createFakeBackend(name, PRINTER, createStage())

const UUID = /^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/
const OWN_IDS: Record<BackendName, RegExp> = {
  claude: UUID,
  codex: UUID,
  gemini: UUID,
  opencode: /^ses_[\w-]+$/,
  pi: UUID,
}

it('an empty session id is none', async () => {
  const { result } = await runTurn(createUnstarted('claude'), { sessionId: '' })
  expect(result).toHaveProperty('exitCode')
})

it.each(BACKEND_NAMES)('no string that is not one of its own session ids starts %s', async (name) => {
  const backend = createUnstarted(name)
  const anyId = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.uuid().map((id) => `-${id}`),
    fc.uuid().map((id) => `${id}\n`),
    fc.uuid().map((id) => id.replaceAll('-', '')),
    fc.constantFrom('latest', '--last', '-c', '../../x', '0', 'ses_', 'ses_x y', 'ses_x\n', '-ses_x'),
  )
  await fc.assert(
    fc.asyncProperty(
      anyId.filter((id) => id !== '' && !OWN_IDS[name].test(id)),
      async (sessionId) => {
        const { result } = await runTurn(backend, { sessionId })
        expect(result).toEqual({
          isError: true,
          durationMs: 0,
          failure: { reason: 'session_lost', message: expect.any(String), report: result.failure?.message },
        })
      },
    ),
  )
})

const BAD_NAMES = ['', '-', '--help', '-x', ' x', 'a\0b', 'a\nb']

it.each(BACKEND_NAMES)('no model whose name cannot be one starts %s', async (name) => {
  const backend = createUnstarted(name)
  // An empty one counts as none.
  const models = BAD_NAMES.filter((model) => model !== '')
  const results = await Promise.all(models.map((model) => runTurn(backend, { model })))
  expect(results.map(({ result }) => result)).toEqual(
    models.map((model) => refused(`${JSON.stringify(model)} is not a valid model name.`)),
  )
})

it.each(BACKEND_NAMES)('no element of a list of tools that is not one tool starts %s', async (name) => {
  const backend = createUnstarted(name)
  const elements = [...BAD_NAMES, 'Read Bash', 'read,bash', 'Read(x) Bash Read(y)', 'Read(x', 'Bash(echo (a) b)']
  const results = await Promise.all(elements.map((tool) => runTurn(backend, { allowedTools: ['Read', tool] })))
  expect(results.map(({ result }) => result)).toEqual(
    elements.map((tool) => refused(expect.stringContaining(`invalid tool ${JSON.stringify(tool)}: `))),
  )
})

function refused(message: string): AgentResult {
  return { isError: true, durationMs: 0, failure: { reason: 'refused', message, report: message } }
}

it.each(BACKEND_NAMES)('no turn that is to ask starts %s for itself: nothing would be asked', async (name) => {
  const approve = async () => ({ isAllowed: true }) as const
  const started = [{ approve }, { approve, command: { args: [] } }].map((request) =>
    runTurn(createUnstarted(name), request),
  )
  const failures = (await Promise.all(started)).map(({ result }) => [result.failure?.reason, result.failure?.message])
  const ways = 'Choose claude, codex, gemini or opencode, or set its permissions to "allow".'
  expect(failures).toEqual([
    ['refused', expect.stringMatching(`^\\w+ cannot ask for approval. ${ways}$`)],
    ['refused', expect.stringContaining('when a command template starts it. Remove the template, or')],
  ])
})
