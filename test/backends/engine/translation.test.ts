// What applies to every CLI, whatever it prints; the quirks of each are in its own test.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBackend } from '../../../src/backends/registry.js'
import { BACKEND_NAMES, type BackendEventResult } from '../../../src/backends/types.js'
import { ANSWERS, createPrintingBackend, runTurn } from '../fake-cli.js'
import { findCaptures, inWords, readCapture } from '../golden/captures.js'
import { adapterConfig } from '../../kit/adapter-config.js'

const CONFIG = adapterConfig({ maxTurns: 0 })

describe.each(BACKEND_NAMES)('what %s prints', (name) => {
  const parse = (stdout: string) => createBackend(name, CONFIG).parseOutput(stdout)

  it('is reported once for each unknown kind of event', async () => {
    const stdout = `{"type":"new"}\n{"type":"newer","x":1}\n{"type":"new"}\n{"type":7}\n${ANSWERS[name]}`
    const { events, result } = await runTurn(createPrintingBackend(name, { stdout }))
    expect(inWords(events, result).filter((line) => line.startsWith('notice'))).toEqual([
      'notice The agent sent an unknown event: new',
      'notice The agent sent an unknown event: newer',
      'notice The agent sent an unknown event: (number)',
    ])
  })

  it('is reported verbatim if it is not JSON, cut to 500 characters', async () => {
    const stdout = `Loading\n${'x'.repeat(501)}\n${ANSWERS[name]}`
    const { events, result } = await runTurn(createPrintingBackend(name, { stdout }))
    expect(inWords(events, result).filter((line) => line.startsWith('notice'))).toEqual([
      'notice Loading',
      `notice ${'x'.repeat(500)}…`,
    ])
  })

  it('may be any JSON: it is an answer or an error, never an exception', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (values) => {
        const stdout = values.map((value) => JSON.stringify(value)).join('\n')
        expect(malformed(parse(stdout))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('may break every shape we know in one place: it is an answer or an error, never an exception', () => {
    const captured = findCaptures(name).flatMap((capture) => linesOf(String(readCapture(name, capture).stdout)))
    const anyBroken = fc.record({
      line: fc.constantFrom(...captured),
      at: fc.nat(),
      value: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', null, {}, [], 0, -1, true, [null], [{}])),
    })
    fc.assert(
      fc.property(anyBroken, fc.boolean(), ({ line, at, value }, isLast) => {
        const broken = JSON.stringify(replaceAt(line, at, value))
        const stdout = isLast ? `${ANSWERS[name]}${broken}\n` : `${broken}\n${ANSWERS[name]}`
        expect(malformed(parse(stdout))).toEqual([])
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['a list', '{"type":[]}'],
    ['nothing', '{}'],
    ['an object that cannot be written', '{"type":{"toString":1}}'],
    ['a name every object has', '{"type":"constructor"}\n{"type":"__proto__"}\n{"__proto__":{"type":"result"}}'],
    ['an array of arrays', '[[{"type":"result"}]]'],
  ])('may be of the type %s before the answer', (_, line) => {
    expect(parse(`${line}\n${ANSWERS[name]}`)).toEqual({ isError: false, responseText: 'done' })
  })

  it('may be nested as deep as it likes before the answer', () => {
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
    const kinds = ['assistant', 'result', 'message', 'tool_use', 'item.started', 'message_end', 'error']
    const lines = kinds.map((type) => `{"type":"${type}","x":${deep}}\n`)
    expect(parse(`${lines.join('')}${ANSWERS[name]}`)).toEqual({ isError: false, responseText: 'done' })
  })

  it('has no session if it names none', () => {
    expect(parse('')).toEqual({ isError: true, responseText: 'Failed to parse CLI output' })
  })
})

describe.each(BACKEND_NAMES)('a run of %s', (name) => {
  const BROKEN: Record<typeof name, string> = {
    claude: '{"type":"result","is_error":true,"result":{"a":1}}',
    codex: '{"type":"turn.failed","error":{"message":{"a":1}}}',
    gemini: '{"type":"result","status":"error","error":{"message":{"a":1}}}',
    opencode: '{"type":"error","error":{"data":{"message":{"a":1}}}}',
    pi: '{"type":"message_end","message":{"role":"assistant","stopReason":"error","errorMessage":{"a":1}}}',
  }

  it.each([0, 1])('ends with complete when its error is not text, exit code %i', async (exit) => {
    const { result } = await runTurn(createPrintingBackend(name, { stdout: BROKEN[name], exit }))
    expect({ isError: result.isError, message: typeof result.failure?.message }).toEqual({
      isError: true,
      message: 'string',
    })
  })
})

/** The fields of a `parseOutput` result that do not match its type. */
function malformed({ isError, responseText, sessionId, ...rest }: BackendEventResult): string[] {
  return [
    ...(typeof isError === 'boolean' ? [] : ['isError']),
    ...(typeof responseText === 'string' ? [] : ['responseText']),
    ...(sessionId === undefined || typeof sessionId === 'string' ? [] : ['sessionId']),
    ...Object.keys(rest),
  ]
}

function linesOf(stdout: string): unknown[] {
  return stdout.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as unknown]
    } catch {
      return [] // A line of a document, or text.
    }
  })
}

/** The same value with one field, counted from the outside in, replaced. */
function replaceAt(value: unknown, at: number, replacement: unknown): unknown {
  const places = countPlaces(value)
  let left = at % places
  const visit = (current: unknown): unknown => {
    if (left === 0) {
      left -= 1
      return replacement
    }
    left -= 1
    if (left < 0) return current
    if (Array.isArray(current)) return current.map(visit)
    if (typeof current !== 'object' || current === null) return current
    return Object.fromEntries(Object.entries(current).map(([key, inner]) => [key, visit(inner)]))
  }
  return visit(value)
}

function countPlaces(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, inner) => sum + countPlaces(inner), 1)
}

describe('an answer with something broken beside it', () => {
  it.each([
    ['codex', { type: 'message', role: 'assistant', content: 'A', session_id: null }],
    ['gemini', { response: 'A', session_id: null }],
    ['gemini', { response: 'A', stats: { models: { some: {} } } }],
    ['opencode', { type: 'result', text: 'A', session_id: null }],
    ['opencode', { type: 'result', text: 'A', sessionID: null }],
  ] as const)('is still the answer of %s: %j', (name, value) => {
    expect(createBackend(name, CONFIG).parseOutput(JSON.stringify(value))).toEqual({
      isError: false,
      responseText: 'A',
    })
  })
})

it.each([
  [undefined, {}],
  [{ command: 'ls' }, { command: 'ls' }],
  ['ls', { value: 'ls' }],
  [null, { value: null }],
])('the input %j of a tool is reported as %j', async (input, told) => {
  const stdout = [
    { type: 'assistant', message: { content: [{ type: 'tool_use', id: 't', name: 'Bash', input }] } },
    { type: 'result', result: 'done' },
  ].map((line) => JSON.stringify(line))
  const { events } = await runTurn(createPrintingBackend('claude', { stdout: stdout.join('\n') }))
  expect(events.find((event) => event.type === 'tool_use')).toMatchObject({ toolInput: told })
})

it('many runs may share one signal', async () => {
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', onWarning)
  const { signal } = new AbortController()
  const backend = createPrintingBackend('claude', { stdout: ANSWERS.claude })
  await Promise.all(Array.from({ length: 15 }, () => runTurn(backend, {}, signal)))
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})
