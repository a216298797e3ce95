import { expect, it } from 'vitest'
import { search, type SearchOptions } from '../../src/cli/commands/search.js'
import { openStoreReadOnly } from '../../src/store/store.js'
import { describeEngines } from '../kit/engines.js'
import { createStage, type Stage } from './stage.js'
import { SILENT_LOG } from '../kit/log.js'

function searchIn({ store }: Pick<Stage, 'store'>, words: string[], options: Partial<SearchOptions> = {}) {
  return search(store, { words, isJson: false, ...options })
}

/** Only the full texts. */
async function textsOf(stage: Stage, words: string[], options: Partial<SearchOptions> = {}): Promise<string[]> {
  const hits = JSON.parse(await searchIn(stage, words, { ...options, isJson: true })) as { text: string }[]
  return hits.map(({ text }) => text)
}

/** One conversation for each text, so that they do not wait for each other. */
async function stageWith(engine: Parameters<typeof createStage>[0], texts: string[]): Promise<Stage> {
  const stage = await createStage(engine)
  for (const [index, text] of texts.entries()) {
    const minute = String(index).padStart(2, '0')
    await stage.say(`2025-03-01T10:${minute}:00Z`, text, { address: `room ${index}` })
  }
  return stage
}

/** What each word finds. */
async function foundIn(stage: Stage, words: string[]): Promise<Record<string, string[]>> {
  return Object.fromEntries(await Promise.all(words.map(async (word) => [word, await textsOf(stage, [word])] as const)))
}

describeEngines('search', (engine) => {
  it('shows when, where, who and the line, newest first', async () => {
    const stage = await createStage(engine)
    await stage.say('2025-03-01T10:00:00Z', 'Hello\nPlease fix the Parser\nThanks')
    await stage.answer('2025-03-01T10:00:05Z', 'Done.\nThe parser reads dates now.')
    await stage.say('2025-03-02T10:00:00Z', '  ', { author: 'bob' })
    expect([await searchIn(stage, ['PARSER']), await searchIn(stage, ['is empty'])]).toEqual([
      [
        '2025-03-01 10:00:05 UTC  chat/room  claude  The parser reads dates now.',
        '2025-03-01 10:00:00 UTC  chat/room  ann     Please fix the Parser',
      ].join('\n'),
      '2025-03-02 10:00:00 UTC  chat/room  aetheel  The message is empty. Write what the agent should do.',
    ])
  })

  it('works on a read-only database', async () => {
    const stage = await stageWith(engine, ['Hello'])
    const store = await openStoreReadOnly(stage.location, SILENT_LOG)
    const texts = await textsOf({ ...stage, store }, ['hello'])
    await store.close()
    expect(texts).toEqual(['Hello'])
  })

  it('prints everything as JSON', async () => {
    const stage = await createStage(engine)
    await stage.say('2025-03-01T10:00:00Z', 'Hi')
    await stage.answer('2025-03-01T10:00:05Z', 'Hello\nyou', { notes: ['A note.'] })
    expect(JSON.parse(await searchIn(stage, ['hello'], { isJson: true }))).toEqual([
      {
        type: 'reply',
        id: 'id-5',
        at: '2025-03-01T10:00:05.000Z',
        channel: 'chat',
        address: 'room',
        author: 'claude',
        text: 'Hello\nyou\nA note.',
      },
    ])
  })

  it('takes wildcards, quotes and escapes literally', async () => {
    const path = String.raw`C:\temp "x"`
    const stage = await stageWith(engine, ['100% sure', 'snake_case', path, `it's`, 'nothing'])
    const expected = {
      '%': ['100% sure'],
      _: ['snake_case'],
      e_c: ['snake_case'],
      '\\': [path],
      '"x"': [path],
      [`'`]: [`it's`],
      's%': [],
      '*': [],
    }
    expect(await foundIn(stage, Object.keys(expected))).toEqual(expected)
  })

  it('finds words whatever their case, in other scripts too', async () => {
    const texts = ['über uns', 'ПРИВЕТ, мир', 'Die Straße', 'Die STRASSE', 'Café', 'οδος', '日本語', 'gut 👍🏽']
    const expected = {
      ÜBER: ['über uns'],
      привет: ['ПРИВЕТ, мир'],
      straße: ['Die STRASSE', 'Die Straße'],
      'cafe\u0301': ['Café'],
      ΟΔΟΣ: ['οδος'],
      日本: ['日本語'],
      '👍': ['gut 👍🏽'],
    }
    expect(await foundIn(await stageWith(engine, texts), Object.keys(expected))).toEqual(expected)
  })

  it('does not search the stored form of a reply', async () => {
    const stage = await createStage(engine)
    await stage.say('2025-03-01T10:00:00Z', 'Hi')
    await stage.answer('2025-03-01T10:00:05Z', 'Well\nnow')
    expect(await textsOf(stage, ['isError'])).toEqual([])
  })

  it('searches texts, not the files sent with them', async () => {
    const stage = await createStage(engine)
    await stage.say('2025-03-01T10:00:00Z', 'Draw it')
    await stage.answer('2025-03-01T10:00:05Z', 'Here it is.', { files: [{ path: 'plot.png', directory: '/srv/site' }] })
    expect(await foundIn(stage, ['plot', '/srv', 'files', 'here'])).toEqual({
      ...{ plot: [], '/srv': [], files: [] },
      here: ['Here it is.'],
    })
  })

  it('requires every word, in any order', async () => {
    const stage = await stageWith(engine, ['the quick\nbrown fox', 'brown bread', 'fox, brown'])
    expect([await textsOf(stage, ['fox', 'brown']), await textsOf(stage, ['brown fox'])]).toEqual([
      ['fox, brown', 'the quick\nbrown fox'],
      ['the quick\nbrown fox'],
    ])
  })

  it('can be limited to a conversation, a channel and a time', async () => {
    const stage = await stageWith(engine, ['word a', 'word b', 'word c'])
    const found = await Promise.all([
      textsOf(stage, ['word'], { address: 'room 1' }),
      textsOf(stage, ['word'], { channel: 'elsewhere' }),
      textsOf(stage, ['word'], { channel: 'chat', since: '2025-03-01T10:01' }),
      textsOf(stage, ['word'], { since: '2025-03-01' }),
      textsOf(stage, ['word'], { since: '2025-03-02' }),
    ])
    expect(found).toEqual([['word b'], [], ['word c', 'word b'], ['word c', 'word b', 'word a'], []])
  })

  it('says when there is more than it shows', async () => {
    const stage = await stageWith(engine, ['word a', 'word b', 'word c'])
    expect([await searchIn(stage, ['word'], { limit: 2 }), await searchIn(stage, ['word'], { limit: 3 })]).toEqual([
      [
        '2025-03-01 10:02:00 UTC  chat/room 2  ann  word c',
        '2025-03-01 10:01:00 UTC  chat/room 1  ann  word b',
        'There are more. To see more than 2, use --limit.',
      ].join('\n'),
      expect.not.stringContaining('more'),
    ])
  })

  it('cuts a long line around the hit and removes terminal control sequences', async () => {
    const stage = await createStage(engine)
    const text = `\u001B]0;title\u0007${'👍'.repeat(300)} the needle\u202E ${'x'.repeat(300)}`
    await stage.say('2025-03-01T10:00:00Z', text, { address: `a\u001B[2J\n${'b'.repeat(60)}`, author: 'a\tn\u0007n' })
    const line = await searchIn(stage, ['needle'], { width: 100 })
    expect([line.length, /\p{Surrogate}/u.test(line), line]).toEqual([
      expect.toSatisfy((length: number) => length > 90 && length <= 100),
      false,
      expect.stringMatching(/^2025-03-01 10:00:00 UTC {2}chat\/a \[2J b+… {2}a n n {2}…👍+ the needle x+…$/u),
    ])
  })

  it('says so when nothing is found', async () => {
    const stage = await stageWith(engine, ['Hello'])
    expect([await searchIn(stage, ['nowhere']), await searchIn(stage, ['nowhere'], { isJson: true })]).toEqual([
      'Nothing found.',
      '[]',
    ])
  })

  it('refuses an invalid date', async () => {
    const stage = await createStage(engine)
    const dates = ['yesterday', '2025-02-30', '2025-13-01', '2025-03-01T25:00', '']
    const refusals = dates.map((since) => searchIn(stage, ['x'], { since }).catch((error: unknown) => error))
    expect(await Promise.all(refusals)).toEqual(
      dates.map((since) => {
        const message = `"${since}" is not a date. Write it as 2025-12-31 or 2025-12-31T18:30.`
        return expect.objectContaining({ code: 'request_invalid', message })
      }),
    )
  })

  it('refuses an empty search', async () => {
    const stage = await createStage(engine)
    await expect(searchIn(stage, [' ', ''])).rejects.toMatchObject({ code: 'request_invalid' })
  })
})
