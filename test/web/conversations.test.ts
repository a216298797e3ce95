import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Conversation, TranscriptEntry } from '../../src/client/aetheel-client.js'
import { completed, completingAt } from '../../web/src/conversations/completion.js'
import { Drafts } from '../../web/src/conversations/drafts.js'
import { piecesOf } from '../../web/src/conversations/marked-words.js'
import { problemOf } from '../../web/src/conversations/message-problem.js'
import { EMPTY_WINDOW, withLatest, withOlder } from '../../web/src/conversations/transcript-window.js'
import { asNow, type Listed } from '../../web/src/conversations/use-conversations.js'

const MOST_SHOWN = 120

describe('the transcript window', () => {
  it('ends with the latest entries, including new ones', () => {
    const held = withLatest(EMPTY_WINDOW, pageOf(1, 10))
    const grown = withLatest(held, pageOf(6, 12))
    expect([numbersOf(grown), grown.before, grown.isBehind]).toEqual([range(1, 12), 1, false])
  })

  it('takes the state of a message from the newer page', () => {
    const held = withLatest(EMPTY_WINDOW, pageOf(1, 3))
    const answered = { ...entryOf(3), state: 'answered' as const }
    const { entries } = withLatest(held, { entries: [answered, entryOf(2)], next: 2 })
    expect(entries).toEqual([entryOf(1), entryOf(2), answered])
  })

  it('starts over if it has missed more than a page, so that there is no gap', () => {
    const held = withLatest(EMPTY_WINDOW, pageOf(1, 10))
    const later = withLatest(held, pageOf(40, 50))
    expect([numbersOf(later), later.before]).toEqual([range(40, 50), 40])
  })

  it('drops the latest entries far back, and the oldest at the end', () => {
    const far = range(0, 9).reduce(
      (held, step) => withOlder(held, pageOf(1 + (9 - step) * 20, (10 - step) * 20)),
      EMPTY_WINDOW,
    )
    const back = withLatest(far, pageOf(171, 200))
    expect([numbersOf(far), far.isBehind, numbersOf(back), back.isBehind]).toEqual([
      range(1, MOST_SHOWN),
      true,
      range(171, 200),
      false,
    ])
  })

  it('shows a retried message once, at its current position', () => {
    const held = withLatest(EMPTY_WINDOW, pageOf(1, 10))
    const again = { ...entryOf(2), number: 11 }
    const now = withLatest(held, { entries: [again, ...pageOf(6, 10).entries], next: 6 })
    const ids = now.entries.map(({ id }) => id)
    expect([ids, numbersOf(now)]).toEqual([
      [1, 3, 4, 5, 6, 7, 8, 9, 10, 2].map((id) => `id-${id}`),
      [1, ...range(3, 11)],
    ])
  })

  it('shows fewer entries if they are long, but at least one', () => {
    const long = (number: number): TranscriptEntry => ({ ...entryOf(number), text: 'x'.repeat(2_000_000) })
    const { entries } = withLatest(EMPTY_WINDOW, { entries: range(1, 60).toReversed().map(long), next: null })
    expect([entries.length, entries.at(-1)?.number]).toEqual([20, 60])
  })

  it('is in order, bounded and without duplicates, whatever pages come', () => {
    const page = fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 200 }))
    fc.assert(
      fc.property(fc.array(page, { maxLength: 12 }), (pages) => {
        const held = pages.reduce((window, [isLatest, first, count]) => {
          const next = pageOf(first, first + count)
          return isLatest ? withLatest(window, next) : withOlder(window, next)
        }, EMPTY_WINDOW)
        const numbers = numbersOf(held)
        expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
        expect(numbers.length).toBeLessThanOrEqual(MOST_SHOWN)
      }),
      { numRuns: 200 },
    )
  })
})

describe('drafts', () => {
  it('are kept per conversation, with the same key until the text changes', () => {
    const { drafts } = makeDrafts()
    const written = drafts.change('a', 'Hello')
    drafts.change('b', 'You')
    const again = drafts.get('a')
    const changed = drafts.change('a', 'Hello!')
    drafts.change('b', '')
    expect([again, changed.key === written.key, drafts.get('b').text]).toEqual([written, false, ''])
  })

  it('remember the conversation created for them, until they are empty', () => {
    const { drafts } = makeDrafts()
    const begun = { id: 'c1', wanted: { project_id: 'site' } }
    const written = drafts.change('new', 'Hello')
    drafts.begin('new', begun)
    const again = drafts.get('new')
    const changed = drafts.change('new', 'Hello!')
    drafts.change('new', '')
    expect([again, changed.begun, drafts.change('new', 'Another').begun]).toEqual([
      { ...written, begun },
      begun,
      undefined,
    ])
  })

  it('are only on the page if the browser stores nothing', () => {
    const refusing = (): never => {
      throw new Error('SecurityError')
    }
    const drafts = new Drafts(refusing, () => 'key')
    expect([drafts.change('a', 'Hello'), drafts.get('a')]).toEqual([
      { text: 'Hello', key: 'key' },
      { text: '', key: 'key' },
    ])
  })

  it('are empty if something else was stored under their name', () => {
    const { drafts, kept } = makeDrafts()
    for (const foreign of ['no JSON', 'null', '{"text":1}', '[]']) {
      kept.set('aetheel:draft:a', foreign)
      expect(drafts.get('a').text).toBe('')
    }
  })
})

describe('what cannot be sent', () => {
  it('is text that is too long', () => {
    expect(problemOf('x'.repeat(1_000_001))).toContain('a million characters')
  })
})

describe('what is being typed', () => {
  it.each([
    ['/mo', 3, { kind: 'command', start: 0, query: 'mo' }],
    ['see @src/a b', 10, { kind: 'file', start: 4, query: 'src/a' }],
    ['@', 1, { kind: 'file', start: 0, query: '' }],
    [' /mo', 4, undefined],
    ['/model opus', 11, undefined],
    ['mail ada@example', 16, undefined],
    ['see @src/a b', 12, undefined],
  ] as const)('can be completed: %j at %i', (text, caret, expected) => {
    expect(completingAt(text, caret)).toEqual(expected)
  })

  it('is replaced by what was chosen, and the rest stays', () => {
    const text = 'see @src/a please'
    const completing = completingAt(text, 10)
    expect([
      completing && completed(text, completing, 'src/app.ts'),
      completed('@s', { kind: 'file', start: 0, query: 's' }, 'src/'),
      completed('/mo', { kind: 'command', start: 0, query: 'mo' }, 'model'),
    ]).toEqual([
      { text: 'see @src/app.ts please', caret: 16 },
      { text: '@src/', caret: 5 },
      { text: '/model ', caret: 7 },
    ])
  })
})

describe('the words of a search', () => {
  it('are marked wherever they are, ignoring case', () => {
    expect(piecesOf('The Parser parses (a|b)', 'parse (A|b)').filter(({ isFound }) => isFound)).toEqual(
      ['Parse', 'parse', '(a|b)'].map((text) => ({ text, isFound: true })),
    )
  })

  it('leave the text unchanged', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (text, query) => {
        const pieces = piecesOf(text, query)
        expect(pieces.map((piece) => piece.text).join('')).toBe(text)
      }),
    )
  })
})

describe('the list of conversations', () => {
  it('has new entries at the top, and shows their current state', () => {
    const rows = [listed('b', 2), listed('a', 1)]
    const heard = [conversation('a', 3, { state: 'running' }), conversation('c', 4)]
    const now = asNow(rows, heardOf(heard), {})
    expect(now.map(({ id, state }) => [id, state])).toEqual([
      ['c', 'idle'],
      ['a', 'running'],
      ['b', 'idle'],
    ])
  })

  it('respects its filters, and leaves search results in place', () => {
    const rows = [listed('b', 2), listed('a', 1)]
    const heard = heardOf([conversation('a', 3, { state: 'running' }), conversation('c', 4, { channel: 'discord' })])
    const ids = (filter: object): string[] => asNow(rows, heard, filter).map(({ id }) => id)
    expect([ids({ state: 'running' }), ids({ channel: 'discord' }), ids({ q: 'word' })]).toEqual([
      ['a'],
      ['c'],
      ['b', 'a'],
    ])
  })

  it('does not return to an earlier state', () => {
    const rows = [listed('a', 5)]
    expect(asNow(rows, heardOf([conversation('a', 3, { state: 'running' })]), {})).toEqual(rows)
  })
})

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

function numbersOf({ entries }: { entries: TranscriptEntry[] }): number[] {
  return entries.map(({ number }) => number)
}

/** As the gateway returns it: latest first. */
function pageOf(first: number, last: number) {
  return { entries: range(first, last).toReversed().map(entryOf), next: first }
}

function entryOf(number: number): Extract<TranscriptEntry, { type: 'message' }> {
  return {
    type: 'message',
    id: `id-${number}`,
    number,
    kind: 'message',
    author: 'ann',
    text: `Message ${number}`,
    state: 'queued',
    problem: null,
    files: [],
    merged_into: null,
    received_at: '2026-11-16T12:00:00.000Z',
    finished_at: null,
    replies: [],
    runs: [],
  }
}

function makeDrafts() {
  const kept = new Map<string, string>()
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  }
  let keys = 0
  return {
    kept,
    drafts: new Drafts(
      () => storage,
      () => `key-${++keys}`,
    ),
  }
}

function conversation(id: string, second: number, rest: Partial<Conversation> = {}): Conversation {
  return {
    id,
    channel: 'web',
    address: id,
    is_private: false,
    project_id: null,
    title: null,
    title_is_chosen: false,
    is_pinned: false,
    is_archived: false,
    has_failed: false,
    state: 'idle',
    open: 0,
    asked: 0,
    question: null,
    message_id: null,
    waits_until: null,
    run: null,
    last_number: 1,
    created_at: '2026-11-16T12:00:00.000Z',
    updated_at: `2026-11-16T12:00:0${second}.000Z`,
    ...rest,
  }
}

function listed(id: string, second: number): Listed {
  return { ...conversation(id, second), match: null }
}

function heardOf(conversations: Conversation[]) {
  return { conversations: new Map(conversations.map((heard) => [heard.id, heard])) }
}
