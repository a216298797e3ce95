import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentEvent, AgentEventBody, AgentResult } from '../../src/backends/types.js'
import { createScrubber, EventScrubber, MARK } from '../../src/credentials/scrubber.js'
import { looseText, secret, splitAt } from './arbitraries.js'

const SECRET = 'sk-0123456789'

describe('the events of a run', () => {
  it('lose a secret wherever an agent puts it', () => {
    const deep = { list: [{ [SECRET]: `Bearer ${SECRET}`, count: 1 }], encoded: Buffer.from(SECRET).toString('base64') }
    const scrubbedDeep = { list: [{ [MARK]: `Bearer ${MARK}`, count: 1 }], encoded: MARK }
    const usage = {
      inputTokens: 1,
      outputTokens: 2,
      cacheReadTokens: 3,
      cacheWriteTokens: 4,
      reasoningTokens: 5,
      totalTokens: 15,
    }
    const resultWith = (word: string, object: Record<string, unknown>): AgentResult => ({
      isError: true,
      finalOutput: `It is ${word}.`,
      sessionId: word,
      exitCode: 1,
      durationMs: 5,
      usage,
      failure: { reason: 'exit', message: word, report: `Failed: ${word}`, retryAt: 7, stderr: `${word}\n` },
      metadata: object,
    })
    const eventsWith = (word: string, object: Record<string, unknown>): AgentEventBody[] => [
      { type: 'started', sessionId: word, model: word, metadata: object },
      { type: 'output', content: `<${word}>`, stream: 'stdout', metadata: object },
      { type: 'thinking', content: `<${word}>`, metadata: object },
      { type: 'tool_use', toolId: word, toolName: word, toolInput: object, metadata: object },
      { type: 'tool_result', toolId: word, toolName: word, content: word, isError: false, metadata: object },
      { type: 'notice', content: word },
      { type: 'error', content: word, reason: 'exit' },
      { type: 'complete', result: resultWith(word, object), metadata: object },
    ]
    expect(scrubAll([SECRET], eventsWith(SECRET, deep))).toEqual(at(eventsWith(MARK, scrubbedDeep)))
  })

  it('keep the words of the contract, whatever is a secret', () => {
    const events: AgentEventBody[] = [
      { type: 'output', content: 'a', stream: 'stdout' },
      { type: 'error', content: 'b', reason: 'timeout' },
      { type: 'complete', result: { isError: false, durationMs: 123_456, finalOutput: 'content' } },
    ]
    const secrets = ['output', 'stdout', 'complete', 'timeout', 'content', 'timestamp', 'result', '123456', '1000000']
    expect(scrubAll(secrets, events)).toEqual(
      at([
        ...events.slice(0, 2),
        { type: 'complete', result: { isError: false, durationMs: 123_456, finalOutput: MARK } },
      ]),
    )
  })

  it('lose a secret that is split over several', () => {
    expect(scrubAll([SECRET], [...texts('output', 'key: sk-', '0123', '456789!'), tool])).toEqual(
      at([...texts('output', 'key: ', `${MARK}!`), tool]),
    )
  })

  it('wait only for an end that may be the beginning of a secret', () => {
    const scrubber = new EventScrubber(createScrubber([SECRET]))
    const answers = at(texts('output', 'A: ', 'B: sk', '-x.', 'sk-0')).map((event) => scrubber.scrub(event))
    expect(answers).toEqual([texts('output', 'A: '), texts('output', 'B: '), texts('output', 'sk-x.'), []].map(at))
  })

  it.each(['thinking', 'output'] as const)('release pending text before anything else, of %s', (type) => {
    const other = type === 'output' ? 'thinking' : 'output'
    const events = [...texts(type, 'a sk-0'), ...texts(other, 'b sk-0'), tool, ...texts(type, 'c sk-0'), complete('')]
    const told = [
      ...[...texts(type, 'a ', 'sk-0'), ...texts(other, 'b ', 'sk-0'), tool],
      ...[...texts(type, 'c ', 'sk-0'), complete('')],
    ]
    expect(scrubAll([SECRET], events)).toEqual(at(told))
  })

  it('never show the rest of a secret whose beginning had to be released', () => {
    const events = [...texts('output', 'a sk-01'), tool, ...texts('output', '23456', '789 b')]
    expect(scrubAll([SECRET], events)).toEqual(
      at([...texts('output', 'a ', 'sk-01'), tool, ...texts('output', `${MARK} b`)]),
    )
  })

  it('lose a secret that is split around something else, if its beginning is no coincidence', () => {
    const events = [
      ...texts('output', 'a sk-', '012'),
      tool,
      ...texts('output', '34'),
      tool,
      ...texts('output', '56789 b'),
    ]
    expect(scrubAll([SECRET], events)).toEqual(
      at([...texts('output', 'a ', MARK), tool, tool, ...texts('output', ' b')]),
    )
  })

  it('lose a secret that a tool call splits, even if a new paragraph begins after it, and from the answer', () => {
    const events = [
      ...texts('output', 'a sk-012'),
      tool,
      ...texts('output', '\n\n345', '6789 b'),
      complete('3456789 b'),
    ]
    expect(scrubAll([SECRET], events)).toEqual(
      at([...texts('output', 'a ', MARK), tool, ...texts('output', '\n\n', ' b'), complete(`${MARK} b`)]),
    )
  })

  it('lose a secret that the gateway interrupts with a notice', () => {
    const events = [...texts('output', 'a sk-01'), notice, ...texts('output', '23456789 b')]
    expect(scrubAll([SECRET], events)).toEqual(at([...texts('output', 'a '), notice, ...texts('output', `${MARK} b`)]))
  })

  it('continue after something that looked like a secret but was not', () => {
    const events = [...texts('output', 'a sk-012'), tool, ...texts('output', '99 b'), complete('')]
    expect(scrubAll([SECRET], events)).toEqual(
      at([...texts('output', 'a ', MARK), tool, ...texts('output', '99 b'), complete('')]),
    )
  })

  it('show at most five characters of a secret, wherever something else comes between', () => {
    const told = Array.from({ length: SECRET.length - 1 }, (_, index) => {
      const [begin, rest] = [SECRET.slice(0, index + 1), SECRET.slice(index + 1)]
      return textOf(scrubAll([SECRET], [...texts('output', begin), tool, ...texts('output', rest, '.')]), 'output')
    })
    const shown = ['s', 'sk', 'sk-', 'sk-0', 'sk-01', ...Array.from({ length: SECRET.length - 6 }, () => '')]
    expect(told).toEqual(shown.map((beginning) => `${beginning}${MARK}.`))
  })

  it('keep text apart that has different origins', () => {
    const [from, to] = [{ stream: 'stderr' }, { stream: 'stdout' }]
    const events: AgentEventBody[] = [
      { type: 'output', content: 'a sk-', stream: 'stdout', metadata: from },
      { type: 'output', content: 'b', stream: 'stdout', metadata: to },
      complete(''),
    ]
    expect(scrubAll([SECRET], events)).toEqual(
      at([
        { type: 'output', content: 'a ', stream: 'stdout', metadata: from },
        { type: 'output', content: 'b', stream: 'stdout', metadata: to },
        { type: 'output', content: 'sk-', stream: 'stdout', metadata: from },
        complete(''),
      ]),
    )
  })

  it('lose a secret that is split over several while another stream continues', () => {
    const error: AgentEventBody = { type: 'output', content: '.', stream: 'stdout', metadata: { stream: 'stderr' } }
    const between = (texts: AgentEventBody[]): AgentEventBody[] => [...texts.slice(0, 1), error, ...texts.slice(1)]
    expect(scrubAll([SECRET], between(texts('output', 'a sk-0', '123456789 b')))).toEqual(
      at(between(texts('output', 'a ', `${MARK} b`))),
    )
  })

  it('pass without text', () => {
    const events = texts('output', 'a.', '', 'b.')
    expect(scrubAll([SECRET], events)).toEqual(at(events))
  })

  it('know a secret that is added during the run', () => {
    const live = createScrubber()
    const scrubber = new EventScrubber(live)
    const before = at(texts('output', SECRET)).flatMap((event) => scrubber.scrub(event))
    live.add([SECRET])
    const after = at(texts('output', SECRET)).flatMap((event) => scrubber.scrub(event))
    expect([before, after]).toEqual([at(texts('output', SECRET)), at(texts('output', MARK))])
  })

  it('do not pass unseen when they are nested too deeply', () => {
    let toolInput: Record<string, unknown> = { key: SECRET }
    for (let depth = 0; depth < 100_000; depth++) toolInput = { toolInput }
    const use: AgentEventBody = { type: 'tool_use', toolId: '1', toolName: 'read', toolInput }
    expect(scrubAll([SECRET], [use])).toEqual(at([{ ...use, toolInput: { [MARK]: 'nested too deeply' } }]))
  })

  it('together say what the scrubbed whole says, however it is split', () => {
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.array(fc.oneof(looseText, fc.nat(3)), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.constantFrom('output', 'thinking'),
        (secrets, parts, places, type) => {
          const whole = parts.map((part) => (typeof part === 'string' ? part : (secrets[part] ?? ''))).join('')
          const told = scrubAll(secrets, [...texts(type, ...splitAt(whole, places)), complete(whole)])
          const scrubbed = createScrubber(secrets).scrub(whole)
          expect([textOf(told, type), told.at(-1)]).toEqual([scrubbed, { ...complete(scrubbed), timestamp: NOW }])
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('together never say a secret, whatever comes between', () => {
    const between = fc.constantFrom<AgentEventBody[]>([tool], [notice], texts('thinking', 'hm'), [])
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.array(fc.oneof(looseText, fc.nat(3)), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.array(between, { minLength: 13, maxLength: 13 }),
        (secrets, parts, places, others) => {
          const whole = parts.map((part) => (typeof part === 'string' ? part : (secrets[part] ?? ''))).join('')
          const events = splitAt(whole, places).flatMap((text, index) => [
            ...texts('output', text),
            ...(others[index] ?? []),
          ])
          const told = textOf(scrubAll(secrets, [...events, complete('')]), 'output').split(MARK)
          const { forms } = createScrubber(secrets)
          expect([...forms].filter((form) => told.some((text) => text.includes(form)))).toEqual([])
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('lose any secret in any field at any depth', () => {
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.constant(HERE),
        fc.jsonValue(),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(fc.oneof(fc.constant(HERE), fc.string()), tie('tree'), { maxKeys: 3 }),
      ),
    }))
    fc.assert(
      fc.property(secret, fc.dictionary(fc.string(), tree), (value, object) => {
        const json = JSON.stringify(object).replaceAll(HERE, () => JSON.stringify(`<${value}>`).slice(1, -1))
        const filled = JSON.parse(json) as Record<string, unknown>
        const use: AgentEventBody = {
          type: 'tool_use',
          toolId: value,
          toolName: value,
          toolInput: filled,
          metadata: filled,
        }
        const told = JSON.stringify(scrubAll([value], [use])).split(MARK)
        expect(told.filter((text) => text.includes(JSON.stringify(value).slice(1, -1)))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })
})

const NOW = 1_800_000_000_123
/** Where the secret goes. */
const HERE = '\u{1F511}here\u{1F511}'

/** Separates the text before it from the text after it. */
const tool: AgentEventBody = { type: 'tool_use', toolId: '1', toolName: 'read', toolInput: {} }
const notice: AgentEventBody = { type: 'notice', content: 'n' }

function complete(finalOutput: string): AgentEventBody {
  return { type: 'complete', result: { isError: false, durationMs: 1, finalOutput } }
}

function texts(type: 'output' | 'thinking', ...contents: string[]): AgentEventBody[] {
  return contents.map((content) =>
    type === 'output' ? { type, content, stream: 'stdout' as const } : { type, content },
  )
}

function at(events: AgentEventBody[]): AgentEvent[] {
  return events.map((event) => ({ ...event, timestamp: NOW }))
}

function scrubAll(secrets: string[], events: AgentEventBody[]): AgentEvent[] {
  const scrubber = new EventScrubber(createScrubber(secrets))
  return at(events).flatMap((event) => scrubber.scrub(event))
}

function textOf(events: AgentEvent[], type: 'output' | 'thinking'): string {
  return events.map((event) => (event.type === type ? event.content : '')).join('')
}
