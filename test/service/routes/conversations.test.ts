import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { conversationPath } from '../../../src/archive/conversation-path.js'
import { until } from '../../kit/waiting.js'
import { codeOf, say, serve } from './served.js'
import { journalIn, release, steps } from '../../kit/steps-agent.js'
import { Place } from './stage.js'

describe('a conversation in a page', () => {
  it('is begun, written to, answered, read and gone on with', async () => {
    const { client, latest, site } = await serve()
    const begun = await client.conversations.create({ project_id: 'site', model: 'opus' })
    expect(begun).toMatchObject({
      channel: 'web',
      state: 'idle',
      project_id: 'site',
      agent_provider: 'claudecode',
      model: 'opus',
      chosen: { agent_provider: 'claudecode', model: 'opus' },
      directory: site,
      session: null,
      queue: [],
      usage: { runs: 0, cost_usd: null },
    })
    const { id } = begun
    const asked = steps({ text: 'Hello', result: 'Done' })
    const { message_id: messageId } = await client.conversations.send(id, asked)
    const entry = await latest(id, 'answered')
    expect(entry).toMatchObject({
      id: messageId,
      author: 'admin token',
      text: asked,
      replies: [{ text: 'Done', is_error: false, run_id: entry.runs[0]?.id }],
      runs: [{ provider: 'claudecode', model: 'opus', state: 'answered', cost_usd: 0.25 }],
    })
    const { events, next, message_id: ofMessage } = await client.runEvents(entry.runs[0]?.id ?? '')
    expect([events.map(({ id: number, name }) => [number, name]), next, ofMessage]).toEqual([
      [
        [1, 'started'],
        [2, 'output'],
        [3, 'agent_complete'],
      ],
      null,
      messageId,
    ])
    const page = await client.runEvents(entry.runs[0]?.id ?? '', { limit: 1, after: 1 })
    expect([page.events[0]?.data, page.next]).toEqual([{ line: 'Hello', stream: 'stdout' }, 2])
    await client.conversations.send(id, 'and again')
    const second = await latest(id, 'answered')
    expect(second.runs[0]?.session_id).toBe(entry.runs[0]?.session_id)
    const details = await client.conversations.get(id)
    expect(details).toMatchObject({
      state: 'idle',
      open: 0,
      question: 'and again',
      session: { id: second.runs[0]?.session_id, provider: 'claudecode' },
      usage: { runs: 2, input_tokens: 200, output_tokens: 40, cost_usd: 0.5, priced_runs: 2 },
    })
    const newest = await client.conversations.messages(id, { limit: 1 })
    const older = await client.conversations.messages(id, { limit: 1, before: newest.next ?? 0 })
    expect([newest.entries[0]?.id, older.entries[0]?.id, older.next]).toEqual([second.id, messageId, null])
  })

  it('takes a message once under a key, and no empty one or unknown command for a message', async () => {
    const { client, gateway, site } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    const once = { idempotencyKey: 'one' }
    const first = await client.conversations.send(id, 'hello', once)
    const again = await client.conversations.send(id, 'hello', once)
    expect([
      again,
      await codeOf(client.conversations.send(id, 'other', once)),
      await codeOf(client.conversations.send(id, '/stpo')),
      await codeOf(client.conversations.send(id, '/ask  ')),
      await codeOf(client.conversations.send(id, '')),
    ]).toEqual([first, 'conflict', 'request_invalid', 'request_invalid', 'request_invalid'])
    await until(async () => (await client.conversations.get(id)).state === 'idle', 'its rest')
    const noted = (await gateway.store.audit.list(9)).map(({ action }) => action)
    const sent = noted.filter((action) => action.startsWith('conversation.'))
    expect([journalIn(site).length, sent.toSorted()]).toEqual([1, ['conversation.create', 'conversation.message']])
  })

  it('stops the message that is meant, and not the one that has come after it', async () => {
    const { client, latest } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    const first = await say(client, id, 'first')
    await latest(id, 'answered')
    const second = await say(client, id, steps({ hold: 'for-ever' }))
    await latest(id, 'running')
    const other = await client.conversations.create({ project_id: 'site' })
    const late = await client.conversations.stop(id, { messageId: first })
    const { message_id: going } = await client.conversations.get(id)
    const wrong = await codeOf(client.conversations.stop(other.id, { messageId: second }))
    const stopped = await client.conversations.stop(id, { messageId: second })
    await latest(id, 'cancelled')
    expect([late, going, wrong, stopped.is_change]).toEqual([
      { is_change: false, text: 'That has already finished.' },
      second,
      'not_found',
      true,
    ])
  })

  it('can be stopped, retried, given to another agent and started afresh', async () => {
    const { client, latest, site } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    await client.conversations.send(id, steps({ text: 'a' }, { hold: 'for-ever' }))
    await latest(id, 'running')
    await client.conversations.send(id, 'waits')
    const running = await client.conversations.get(id)
    expect([running.state, running.open, running.queue.map(({ state, text }) => [state, text])]).toEqual([
      'running',
      2,
      [
        ['active', steps({ text: 'a' }, { hold: 'for-ever' })],
        ['queued', 'waits'],
      ],
    ])
    expect(await client.conversations.stop(id)).toMatchObject({ is_change: true })
    await latest(id, 'answered')
    expect(await client.conversations.stop(id)).toEqual({ is_change: false, text: 'Nothing is running here.' })

    const failing = await say(client, id, steps({ fail: 'Invalid API key', unless: 'now' }))
    await latest(id, 'failed')
    release(site, 'now')
    const other = await client.conversations.create({ project_id: 'site' })
    expect([
      await codeOf(client.conversations.retry(other.id, failing)),
      await client.conversations.retry(id, failing),
    ]).toEqual(['not_found', { is_change: true, text: 'Queued again.' }])
    await latest(id, 'answered')
    expect(await codeOf(client.conversations.retry(id, failing))).toBe('conflict')

    expect([
      (await client.conversations.get(id)).session?.provider,
      (await client.conversations.newSession(id)).is_change,
      (await client.conversations.get(id)).session,
    ]).toEqual(['claudecode', true, null])

    const changed = await client.conversations.update(id, { agent_provider: 'codex', model: 'gpt-5' })
    const back = await client.conversations.update(id, { agent_provider: null, model: null })
    expect([
      [changed.agent_provider, changed.model, changed.chosen],
      [back.agent_provider, back.model, back.chosen],
      await codeOf(client.conversations.update(id, { agent_provider: 'gemini' })),
    ]).toEqual([
      ['codex', 'gpt-5', { agent_provider: 'codex', model: 'gpt-5', queue_mode: null }],
      ['claudecode', null, { agent_provider: null, model: null, queue_mode: null }],
      'backend_missing',
    ])
  })

  it('moves to another project with its agent, and takes another queue mode', async () => {
    const { client, clientWith, latest, site } = await serve()
    const shop = await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
    const { id, queue_mode: before } = await client.conversations.create({ project_id: 'site' })
    await client.conversations.send(id, 'hello')
    await latest(id, 'answered')
    const refused = await codeOf(client.conversations.update(id, { project_id: 'shop', agent_provider: 'pi' }))
    const stayed = await client.conversations.get(id)
    const moved = await client.conversations.update(id, { project_id: 'shop', queue_mode: 'collect' })
    await client.conversations.send(id, steps({ hold: 'shop' }))
    await latest(id, 'running')
    const busy = await codeOf(client.conversations.update(id, { project_id: 'site' }))
    release(shop.directory, 'shop')
    await latest(id, 'answered')
    const back = await client.conversations.update(id, { project_id: null, queue_mode: null })
    expect([
      [before, refused, [stayed.project_id, stayed.directory], busy],
      [moved.project_id, moved.directory, moved.session, moved.queue_mode, moved.chosen.queue_mode],
      [back.project_id, back.directory, back.queue_mode, back.chosen.queue_mode],
    ]).toEqual([
      ['followup', 'backend_missing', ['site', site], 'conflict'],
      ['shop', shop.directory, null, 'collect', 'collect'],
      ['site', site, 'followup', null],
    ])
    const token = await clientWith('run', ['site'])
    const { id: theirs } = await token.conversations.create({ project_id: 'site' })
    await client.execute('site', { prompt: 'hello' })
    const [ofCommand] = (await client.conversations.list({ channel: 'http' })).conversations
    expect([
      await codeOf(token.conversations.update(theirs, { project_id: 'shop' })),
      await codeOf(token.conversations.update(theirs, { project_id: null })),
      await codeOf(client.conversations.update(theirs, { project_id: 'none' })),
      await codeOf(client.conversations.update(ofCommand?.id ?? '', { project_id: 'shop' })),
      (await client.conversations.update(theirs, { project_id: 'shop' })).project_id,
      await codeOf(token.conversations.send(theirs, 'in the shop')),
    ]).toEqual(['forbidden', 'forbidden', 'not_found', 'conflict', 'shop', 'not_found'])
  })

  it('continues an earlier session, of those that the token may see', async () => {
    const { client, clientWith, gateway, latest, site } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    const ask = async (text: string) => {
      await client.conversations.send(id, text)
      return (await latest(id, 'answered')).runs[0]?.session_id ?? ''
    }
    const first = await ask('the first')
    await client.conversations.newSession(id)
    const second = await ask('the second')
    const listed = await client.conversations.sessions(id)
    const done = await client.conversations.resume(id, first)
    const again = await client.conversations.resume(id, first)
    const third = await ask('the third')
    expect([
      listed.map(({ id: session, provider, question, is_current: isCurrent }) => [
        session,
        provider,
        question,
        isCurrent,
      ]),
      [done.is_change, again.is_change, third],
    ]).toEqual([
      [
        [second, 'claudecode', 'the second', true],
        [first, 'claudecode', 'the first', false],
      ],
      [true, false, first],
    ])
    // What was said elsewhere in the same directory.
    const elsewhere = '3b241101-e2bb-4255-8caf-4136c566a962'
    const place = { channel: 'discord', address: 'thread', projectId: 'site' }
    await gateway.store.conversations.enter(place, elsewhere, 1)
    const { messageId } = await gateway.queue.accept({ ...place, platformId: 'p', author: 'ann', text: 'by ann' })
    const run = { id: 'r', messageId, conversationId: elsewhere, gatewayId: 'g', backend: 'claude', directory: site }
    await gateway.store.runs.begin(run, Date.now())
    const result = { isError: false, durationMs: 1, sessionId: 'session-of-ann' }
    await gateway.store.runs.end('r', 'answered', result, Date.now())
    await gateway.store.sessions.choose({ ...run, sessionId: 'session-of-ann' }, Date.now())
    const token = await clientWith('run', ['site'])
    const seen = async () => (await token.conversations.sessions(id)).map(({ question }) => question)
    const ofSite = await seen()
    const held = await codeOf(token.conversations.resume(id, 'session-of-ann'))
    await gateway.store.conversations.configure(elsewhere, { projectId: 'other' })
    expect([
      [ofSite, held],
      [await seen(), await codeOf(token.conversations.resume(id, 'session-of-ann'))],
      await codeOf(token.conversations.resume(id, first.slice(0, 8))),
      await codeOf((await clientWith('read')).conversations.resume(id, first)),
    ]).toEqual([
      [['by ann', 'the third', 'the second'], 'forbidden'],
      [['the third', 'the second'], 'not_found'],
      'not_found',
      'forbidden',
    ])
  })

  it('is refused if there is no such project or agent, and leaves nothing behind', async () => {
    const { client } = await serve()
    expect([
      await codeOf(client.conversations.create({ project_id: 'nope' })),
      await codeOf(client.conversations.create({ agent_provider: 'gemini' })),
      (await client.conversations.list()).conversations,
    ]).toEqual(['not_found', 'backend_missing', []])
  })
})

describe('a slash command', () => {
  it('is answered at once, as in a chat, and what it gives to the agent is named', async () => {
    const { client, latest } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    const give = async (line: string) => {
      const given = await client.conversations.send(id, line)
      return 'command' in given ? [given.command, given.answer, given.is_change] : []
    }
    await client.conversations.send(id, steps({ text: 'so far' }, { pause: true }))
    await latest(id, 'answered')
    const continued = await client.conversations.send(id, '/continue')
    const names = (await client.conversations.commands(id)).map(({ name }) => name)
    const { id: going } = await latest(id, 'answered')
    expect([
      await give('/model opus'),
      await give('/stop'),
      await give('/approve'),
      await give('/backend gemini'),
      (await give('/help'))[0],
      (await give('/clear'))[0],
      [continued, names.includes('resume')],
      (await client.conversations.get(id)).model,
    ]).toEqual([
      ['model', expect.stringMatching(/opus/), true],
      ['stop', 'Nothing is running here.', false],
      ['approve', 'Nothing is waiting for approval here.', false],
      ['backend', expect.stringMatching(/gemini is not installed/), false],
      'help',
      'new',
      [{ conversation_id: id, command: 'continue', answer: 'Continuing.', is_change: true, message_id: going }, true],
      'opus',
    ])
  })

  it('does no more than the token may', async () => {
    const { client, clientWith, gateway, latest, site } = await serve()
    await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
    const { id } = await client.conversations.create({ project_id: 'site' })
    await client.conversations.send(id, 'mine')
    await latest(id, 'answered')
    const chat = '3b241101-e2bb-4255-8caf-4136c566a962'
    const place = { channel: 'discord', address: 'thread', projectId: 'site' }
    await gateway.store.conversations.enter(place, chat, 1)
    const { messageId } = await gateway.queue.accept({ ...place, platformId: 'p', author: 'ann', text: 'by ann' })
    const run = { id: 'r', messageId, conversationId: chat, gatewayId: 'g', backend: 'claude', directory: site }
    await gateway.store.runs.begin(run, Date.now())
    const result = { isError: false, durationMs: 1, sessionId: 'session-of-ann' }
    await gateway.store.runs.end('r', 'answered', result, Date.now())
    await gateway.store.sessions.choose({ ...run, sessionId: 'session-of-ann' }, Date.now())
    const token = await clientWith('run', ['site'])
    const { id: theirs } = await token.conversations.create({ project_id: 'site' })
    const held = await codeOf(token.conversations.send(theirs, '/resume session-of-ann'))
    await gateway.store.conversations.configure(chat, { projectId: 'shop' })
    const sessions = await token.conversations.send(theirs, '/sessions')
    expect([
      held,
      'answer' in sessions && /mine/.test(sessions.answer),
      'answer' in sessions && /by ann/.test(sessions.answer),
      await codeOf(token.conversations.send(theirs, '/project')),
      await codeOf(token.conversations.send(theirs, '/project shop')),
      await codeOf((await clientWith('read', ['site'])).conversations.send(theirs, '/status')),
      await codeOf(client.conversations.send(chat, '/status')),
    ]).toEqual(['forbidden', true, false, 'forbidden', 'forbidden', 'forbidden', 'conflict'])
  })
})

describe('a file', () => {
  const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 0xff])

  it('is uploaded, sent with a message, seen again as it was, and gone with its conversation', async () => {
    const { client, latest, config, site, token, url } = await serve()
    const headers = { authorization: `Bearer ${token}` }
    const { id } = await client.conversations.create({ project_id: 'site' })
    const picture = await client.conversations.upload(id, '../../a b.png', new Blob([PNG], { type: 'image/png' }))
    const page = await client.conversations.upload(id, 'x.html', new Blob(['<script>'], { type: 'text/html' }))
    const json = await client.conversations.upload(id, 'x.json', new Blob(['{}'], { type: 'application/json' }))
    const files = [picture, page, json].map((file) => file.id)
    const sent = await client.conversations.send(id, 'Look', { files, idempotencyKey: 'one' })
    const again = await client.conversations.send(id, 'Look', { files, idempotencyKey: 'one' })
    const entry = await latest(id, 'answered')
    const prompt = journalIn(site)[0]?.prompt ?? ''
    const [path = ''] = /(?<=Attached file: ).*(?= \(image)/.exec(prompt) ?? []
    const shown = await client.conversations.file(id, picture.id)
    expect([
      sent.message_id === again.message_id,
      [entry.text, entry.files],
      [path.endsWith('/a b.png'), readFileSync(join(site, path)).equals(PNG)],
      [shown.type, new Uint8Array(await shown.arrayBuffer())],
      (await client.conversations.file(id, page.id)).type,
      (await client.conversations.file(id, json.id)).type,
      (await client.conversations.upload(id, 'empty', new Blob([]))).size,
      (await fetch(`${url}/conversations/${id}/files`, { method: 'POST', headers })).status,
      await codeOf(client.conversations.send(id, 'again', { files })),
      await codeOf(client.conversations.file((await client.conversations.create()).id, picture.id)),
    ]).toEqual([
      true,
      ['Look', expect.arrayContaining([picture, page, json])],
      [true, true],
      ['image/png', PNG],
      'text/plain;charset=utf-8',
      'application/octet-stream',
      0,
      201,
      'conflict',
      'not_found',
    ])
    await client.conversations.remove(id)
    expect([readdirSync(join(config.home, 'uploads')), existsSync(join(site, path))]).toEqual([[], false])
  })

  it('is refused if it is too large, of no type that is taken, for another channel or for a token that only reads', async () => {
    const { client, clientWith, gateway, config, token, url } = await serve(new Place({ attachmentMaxMb: 1 }))
    const { id } = await client.conversations.create({ project_id: 'site' })
    const large = new Blob([new Uint8Array(1024 * 1024 + 1)], { type: 'image/png' })
    const ofUnknownLength = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: large.stream() }
    const chat = '3b241101-e2bb-4255-8caf-4136c566a962'
    await gateway.store.conversations.enter({ channel: 'chat', address: 'a' }, chat, 1)
    const upload = (file: Blob, to = id, by = client) => codeOf(by.conversations.upload(to, 'a', file))
    expect([
      await upload(large),
      (await fetch(`${url}/conversations/${id}/files`, { ...ofUnknownLength, duplex: 'half' } as RequestInit)).status,
      await upload(new Blob([PNG], { type: 'font/ttf' })),
      await upload(new Blob([PNG]), chat),
      await upload(new Blob([PNG]), id, await clientWith('read')),
      readdirSync(join(config.home, 'uploads')),
    ]).toEqual(['too_large', 413, 'request_invalid', 'conflict', 'forbidden', []])
  })

  it('that nobody sends is removed, and so is what was left of one', async () => {
    const place = new Place()
    const { client, gateway, stop } = await serve(place)
    const { id } = await client.conversations.create()
    const first = await client.conversations.upload(id, 'first', new Blob(['1']))
    const second = await client.conversations.upload(id, 'second', new Blob(['2']))
    const forgotten = { id: 'x', conversationId: id, name: 'x', mediaType: 'text/plain', bytes: 0, createdAt: 1 }
    await gateway.store.uploads.add(forgotten)
    await stop()
    const directory = join(place.config.home, 'uploads')
    writeFileSync(join(directory, 'x'), '')
    writeFileSync(join(directory, `${randomUUID()}.part`), '')
    await serve(place)
    await until(() => readdirSync(directory).length === 2, 'its end')
    expect(readdirSync(directory).toSorted()).toEqual([first.id, second.id].toSorted())
  })
})

describe('what the agent has changed', () => {
  it('is listed file by file, latest first, from the edits of its tools', async () => {
    const { client, latest, site } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    const edit = { file_path: join(site, 'src/a.ts'), old_string: 'one\ntwo\n', new_string: 'one\n2\n3\n' }
    await client.conversations.send(
      id,
      steps(
        { tool: 'Edit', input: edit },
        { tool: 'Read', input: { file_path: 'b' } },
        { tool: 'Write', input: { file_path: '/etc/c', content: `${'c'.repeat(30_000)}\n` } },
        { tool: 'apply_patch', input: { patchText: '*** Begin Patch\n*** Update File: d\n-x\n+y\n*** End Patch' } },
        { tool: 'file_change', input: { changes: [{ path: 'e', kind: 'add' }] } },
        { tool: 'Edit', input: { ...edit, old_string: '2', new_string: '' } },
      ),
    )
    const { id: messageId, runs } = await latest(id, 'answered')
    const { files, is_cut: isCut } = await client.conversations.changes(id)
    expect(files.map(({ path, added, removed, edits }) => [path, added, removed, edits.length])).toEqual([
      ['src/a.ts', 2, 2, 2],
      ['e', 0, 0, 1],
      ['d', 1, 1, 1],
      ['/etc/c', 1, 0, 1],
    ])
    const [first, , patched, written] = files
    expect([first?.edits[1], patched?.edits[0]?.patch, written?.edits[0]?.is_cut, isCut]).toEqual([
      {
        message_id: messageId,
        run_id: runs[0]?.id,
        at: expect.any(String),
        tool: 'Edit',
        patch: null,
        old: edit.old_string,
        new: edit.new_string,
        is_cut: false,
      },
      '*** Update File: d\n-x\n+y\n',
      true,
      false,
    ])
  })
})

describe('the list of conversations', () => {
  it('has the latest first, in pages, and those of one state, channel or project', async () => {
    const { client, latest } = await serve()
    const ids: string[] = []
    for (const text of ['one', 'two', steps({ hold: 'for-ever' })]) {
      const project = text === 'two' ? {} : { project_id: 'site' }
      const { id } = await client.conversations.create(project)
      await client.conversations.send(id, text)
      await latest(id, text.startsWith('[') ? 'running' : 'answered')
      ids.push(id)
    }
    const [one = '', two = '', three = ''] = ids
    const first = await client.conversations.list({ limit: 2 })
    const rest = await client.conversations.list({ limit: 2, before: first.next ?? '' })
    const listed = async (filter: object): Promise<string[]> =>
      (await client.conversations.list(filter)).conversations.map(({ id }) => id)
    expect([
      [first.conversations.map(({ id, state }) => [id, state]), rest.conversations.map(({ id }) => id), rest.next],
      [await listed({ state: 'running' }), await listed({ state: 'idle' }), await listed({ state: 'waiting' })],
      [await listed({ project: 'site' }), await listed({ channel: 'discord' }), await listed({ channel: 'web' })],
      await codeOf(client.conversations.list({ before: 'yesterday' })),
    ]).toEqual([
      [
        [
          [three, 'running'],
          [two, 'idle'],
        ],
        [one],
        null,
      ],
      [[three], [two, one], []],
      [[three, one], [], [three, two, one]],
      'request_invalid',
    ])
  })

  it('has those in which something was said, with the line', async () => {
    const { client, latest } = await serve()
    const ids: string[] = []
    for (const text of ['apples and pears', 'nothing', 'PEARS\nand Straße']) {
      const { id } = await client.conversations.create()
      await client.conversations.send(id, text)
      await latest(id, 'answered')
      ids.push(id)
    }
    const [one, , three] = ids
    const found = async (filter: { q: string; limit?: number; before?: string }) => {
      const { conversations, next } = await client.conversations.list(filter)
      return [conversations.map(({ id, match }) => [id, match?.type, match?.text]), next]
    }
    const page = await client.conversations.list({ q: 'pears', limit: 1 })
    expect([
      await found({ q: 'pears' }),
      await found({ q: 'straße AND' }),
      await found({ q: 'plums' }),
      await found({ q: 'pears', limit: 1, before: page.next ?? '' }),
      await codeOf(client.conversations.list({ q: '  ' })),
    ]).toEqual([
      [
        [
          [three, 'reply', expect.stringMatching(/pears/i)],
          [one, 'reply', expect.stringMatching(/pears/)],
        ],
        null,
      ],
      [[[three, 'reply', expect.any(String)]], null],
      [[], null],
      [[[one, 'reply', expect.stringMatching(/pears/)]], null],
      'request_invalid',
    ])
  })
})

describe('a conversation in the list', () => {
  it('is called by its first words until somebody names it, pinned, archived, and back when it is written to', async () => {
    const { client, clientWith, latest, gateway } = await serve()
    const { id, title } = await client.conversations.create()
    const words = `${'word '.repeat(15)}and\n\nsome more than eighty characters`
    await client.conversations.send(id, words)
    await latest(id, 'answered')
    await client.conversations.send(id, steps({ fail: 'Invalid API key' }))
    await latest(id, 'failed')
    const { id: other } = await client.conversations.create()
    const shown = async () => {
      const { title: called, title_is_chosen: isChosen, has_failed: hasFailed } = await client.conversations.get(id)
      return [called, isChosen, hasFailed]
    }
    const listed = async (filter: object = {}) =>
      (await client.conversations.list(filter)).conversations.map((found) => found.id)
    const before = [title, await shown(), await listed()]
    await client.conversations.update(id, { title: ' The\nshop ', is_pinned: true, is_archived: true })
    const archived = [
      await shown(),
      await listed(),
      await listed({ archived: true }),
      await listed({ archived: true, pinned: true }),
      await listed({ pinned: false }),
    ]
    await client.conversations.send(id, 'hello again')
    await latest(id, 'answered')
    const written = [await listed(), await listed({ pinned: true })]
    await client.conversations.update(id, { title: null, is_pinned: false })
    const noted = (await gateway.store.audit.list(9)).filter(({ action }) => action === 'conversation.update')
    expect([
      before,
      archived,
      written,
      await shown(),
      await codeOf(client.conversations.update(id, { title: ' ' })),
      await codeOf(client.conversations.update(id, { title: 'x'.repeat(81) })),
      await codeOf((await clientWith('read')).conversations.update(id, { is_pinned: true })),
      noted.map(({ detail }) => detail),
    ]).toEqual([
      [null, [`${'word '.repeat(15)}and…`, false, true], [other, id]],
      [['The shop', true, true], [other], [id], [id], [other]],
      [[id, other], [id]],
      [`${'word '.repeat(15)}and…`, false, false],
      'request_invalid',
      'request_invalid',
      'forbidden',
      ['title, is_pinned', 'title, is_pinned, is_archived'],
    ])
  })

  it('is deleted with everything in it, but not while something runs', async () => {
    const { client, clientWith, latest, gateway, config, site } = await serve()
    const { id } = await client.conversations.create({ project_id: 'site' })
    await client.conversations.send(id, 'hello')
    const { runs } = await latest(id, 'answered')
    await client.conversations.send(id, steps({ hold: 'it' }))
    await latest(id, 'running')
    const busy = await codeOf(client.conversations.remove(id))
    release(site, 'it')
    await latest(id, 'answered')
    const { address } = await client.conversations.get(id)
    const archive = join(config.home, 'archive', conversationPath('web', address))
    mkdirSync(archive, { recursive: true })
    await client.conversations.remove(id)
    expect([
      busy,
      await codeOf(client.conversations.get(id)),
      await codeOf(client.runEvents(runs[0]?.id ?? '')),
      await codeOf(client.conversations.remove(id)),
      (await client.conversations.list()).conversations,
      (await gateway.store.figures.usage({ conversationId: id }, 0)).turns,
      existsSync(archive),
      (await gateway.store.audit.list(1)).map(({ action, subject }) => [action, subject]),
    ]).toEqual(['conflict', 'not_found', 'not_found', 'not_found', [], 0, false, [['conversation.delete', id]]])
    // A chat starts a new conversation, and only an admin deletes one.
    const place = { channel: 'chat', address: 'room' }
    const chat = '3b241101-e2bb-4255-8caf-4136c566a962'
    await gateway.store.conversations.enter(place, chat, 1)
    const refused = await codeOf((await clientWith('run')).conversations.remove(chat))
    await client.conversations.remove(chat)
    const { id: begun, seq } = await gateway.store.conversations.enter(place, 'another', 2)
    expect([refused, begun, seq]).toEqual(['forbidden', 'another', 1])
  })
})

describe('a token', () => {
  it('of projects sees and uses only theirs, and begins nothing else', async () => {
    const { client, clientWith, gateway, latest } = await serve()
    await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
    const { id: ours } = await client.conversations.create({ project_id: 'shop' })
    const { id: theirs } = await client.conversations.create({ project_id: 'site' })
    const { id: none } = await client.conversations.create()
    await client.conversations.send(theirs, 'secret pears')
    const { runs } = await latest(theirs, 'answered')
    await client.conversations.send(ours, 'our pears')
    await latest(ours, 'answered')
    // In a chat, the operator or people choose the project.
    await gateway.store.conversations.enter({ channel: 'chat', address: 'a', projectId: 'shop' }, 'chat-of-shop', 1)
    const shop = await clientWith('run', ['shop'])
    const seen = (await shop.conversations.list()).conversations.map(({ id }) => id)
    const found = (await shop.conversations.list({ q: 'pears' })).conversations.map(({ id }) => id)
    expect([seen, found, (await shop.me()).projects]).toEqual([[ours, 'chat-of-shop'], [ours], ['shop']])
    // The same words as for a run that does not exist.
    const [known = '', unknown] = [runs[0]?.id, '00000000-0000-4000-8000-000000000001']
    const refused = await Promise.all([known, unknown].map((id) => wordsOf(shop.runEvents(id))))
    expect(refused[0]).toBe(refused[1]?.replace(unknown, known))
    expect([
      ...(await Promise.all(
        [theirs, none].flatMap((id) => [
          codeOf(shop.conversations.get(id)),
          codeOf(shop.conversations.messages(id)),
          codeOf(shop.conversations.send(id, 'hello')),
          codeOf(shop.conversations.stop(id)),
          codeOf(shop.conversations.update(id, { model: 'opus' })),
        ]),
      )),
      await codeOf(shop.runEvents(runs[0]?.id ?? '')),
      await codeOf(shop.conversations.create()),
      await codeOf(shop.conversations.create({ project_id: 'site' })),
      await codeOf(shop.conversations.create({ project_id: 'shop' })),
    ]).toEqual([...Array.from({ length: 11 }, () => 'not_found'), 'forbidden', 'forbidden', 'done'])
  })

  it('of a project does not see what an earlier one of the same name had', async () => {
    const { client, clientWith } = await serve()
    await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
    const { id } = await client.conversations.create({ project_id: 'shop' })
    await client.projects.remove('shop', { deletesFiles: true })
    await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
    const shop = await clientWith('admin', ['shop'])
    expect([(await shop.conversations.list()).conversations, await codeOf(shop.conversations.get(id))]).toEqual([
      [],
      'not_found',
    ])
  })

  it('that is not for everything sees nothing that is said to one person', async () => {
    const { client, clientWith, gateway } = await serve()
    const id = '3b241101-e2bb-4255-8caf-4136c566a962'
    const place = { channel: 'web', address: 'ann', projectId: 'site', isPrivate: true }
    await gateway.store.conversations.enter(place, id, 1)
    await gateway.queue.say(place, 'Only for you')
    const [reply] = (await gateway.store.outbox.history(id, 1)).map((delivery) => delivery.id)
    const { messageId } = await gateway.queue.accept({ ...place, platformId: 'p', author: 'ann', text: 'hello' })
    const asking = { toolName: 'Bash', toolInput: {}, summary: 'Bash: ls', askedAt: Date.now(), deadline: Date.now() }
    const question = { id: reply ?? '', messageId, runId: 'r', conversationId: id, backend: 'claude', ...asking }
    await gateway.store.approvals.add(question, true)
    const { id: open } = await client.conversations.create({ project_id: 'site' })
    const theirs = { ...question, messageId, conversationId: open, askedAt: Date.now() - 9 }
    const [second, third] = ['00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000003']
    await gateway.store.approvals.add({ ...theirs, id: second }, true)
    await gateway.store.approvals.add({ ...theirs, id: third, askedAt: theirs.askedAt - 9 }, true)
    const run = await clientWith('run')
    const site = await clientWith('admin', ['site'])
    const page = await run.approvals.list({ limit: 1 })
    const rest = await run.approvals.list({ limit: 1, before: page.next ?? '' })
    expect([page, rest].map(({ approvals, next }) => [approvals.map((approval) => approval.id), next])).toEqual([
      [[second], second],
      [[third], null],
    ])
    expect([
      // In any order: the gateway may have worked on either last.
      new Set((await client.conversations.list()).conversations.map(({ is_private: isPrivate }) => isPrivate)),
      await codeOf(client.conversations.get(id)),
      ...(await Promise.all(
        [run, site].flatMap((token) => [
          token.conversations.list().then(({ conversations }) => conversations.length),
          codeOf(token.conversations.get(id)),
          codeOf(token.conversations.stop(id)),
        ]),
      )),
      await codeOf(client.queue.get(reply ?? '')),
      await codeOf(run.queue.get(reply ?? '')),
      await codeOf(client.approvals.get(reply ?? '')),
      await codeOf(run.approvals.get(reply ?? '')),
      (await run.queue.list({ limit: 1 })).open,
    ]).toEqual([
      new Set([false, true]),
      'done',
      ...[1, 'not_found', 'not_found', 1, 'not_found', 'not_found'],
      ...['done', 'not_found', 'done', 'not_found', []],
    ])
  })

  it('of less than everything changes nothing where people write, and nobody writes there for them', async () => {
    const { client, clientWith, gateway } = await serve()
    const id = '3b241101-e2bb-4255-8caf-4136c566a962'
    const place = { channel: 'discord', address: 'thread', parent: 'room', projectId: 'site' }
    await gateway.store.conversations.enter(place, id, 1)
    const run = await clientWith('run')
    const read = await clientWith('read')
    expect([
      await codeOf(run.conversations.get(id)),
      await codeOf(run.conversations.stop(id)),
      await codeOf(run.conversations.update(id, { model: 'opus' })),
      await codeOf(read.conversations.newSession(id)),
      await codeOf(client.conversations.send(id, 'hello')),
      (await client.conversations.newSession(id)).is_change,
      (await client.conversations.update(id, { model: 'opus' })).model,
      (await client.conversations.get(id)).project_id,
    ]).toEqual(['done', 'forbidden', 'forbidden', 'forbidden', 'conflict', true, 'opus', 'site'])
  })
})

async function wordsOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'done',
    (error: Error) => error.message,
  )
}
