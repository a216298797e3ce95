import { expect, it, onTestFinished } from 'vitest'
import { type ActivityEvent, AetheelClient } from '../../../src/client/aetheel-client.js'
import { until } from '../../kit/waiting.js'
import { say, serve } from './served.js'
import { release, steps } from '../../kit/steps-agent.js'
import { Place, tokenFor } from './stage.js'

type Told = ActivityEvent[]
type RunEvent = Extract<ActivityEvent, { name: 'event' }>['data']

/** Watches until the test ends, or before. */
function watch(client: AetheelClient) {
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const told: Told = []
  const watching = (async () => {
    for await (const next of client.activity({ signal: ending.signal })) told.push(next)
  })().catch((error: unknown) => {
    if (!ending.signal.aborted) throw error
  })
  const leave = async (): Promise<void> => {
    ending.abort()
    await watching
  }
  return { told, leave }
}

function eventsOf(told: Told, messageId: string): RunEvent[] {
  return told.flatMap((next) => (next.name === 'event' && next.data.message_id === messageId ? [next.data] : []))
}

function textOf(events: Pick<RunEvent, 'data'>[]): string {
  return events.map(({ data }) => (typeof data['line'] === 'string' ? data['line'] : '')).join('')
}

function isComplete(told: Told, messageId: string): boolean {
  return eventsOf(told, messageId).at(-1)?.name === 'complete'
}

it('reports what runs and waits, then changes, with the events of each run', async () => {
  const { client, latest, site } = await serve()
  const { id } = await client.conversations.create({ project_id: 'site' })
  const first = await say(client, id, steps({ text: 'before ' }, { hold: 'one' }, { text: 'after' }))
  await until(async () => {
    const [run] = (await latest(id, 'running')).runs
    return (await client.runEvents(run?.id ?? '')).events.some(({ name }) => name === 'output')
  }, 'output')
  const { told } = watch(client)
  await until(() => told.length > 0, 'a snapshot')
  const [snapshot] = told
  if (snapshot?.name !== 'snapshot') throw new Error('There is no snapshot')
  const [running] = snapshot.data.conversations
  const stored = await client.runEvents(running?.run?.id ?? '')
  expect(running).toMatchObject({
    id,
    state: 'running',
    message_id: first,
    last_event_id: stored.events.at(-1)?.id,
  })
  const second = await say(client, id, steps({ drip: 'a b c', everyMs: 20 }))
  release(site, 'one')
  await until(() => isComplete(told, first) && isComplete(told, second), 'both ends')
  const live = eventsOf(told, first)
  const numbers = [...stored.events, ...live].map((event) => event.id)
  expect([numbers, textOf([...stored.events, ...live])]).toEqual([
    numbers.map((_, index) => index + 1),
    'before \n\nafter',
  ])
  const others = eventsOf(told, second)
  expect([others.map((event) => event.id), textOf(others)]).toEqual([others.map((_, index) => index + 1), 'a b c'])
  await until(
    () => told.some(({ name, data }) => name === 'conversation' && data.id === id && data.state === 'idle'),
    'its rest',
  )
})

it('reports everything of runs that end at once, to everybody alike', async () => {
  const { client } = await serve()
  const watchers = [watch(client), watch(client)]
  await until(() => watchers.every(({ told }) => told.length > 0), 'all snapshots')
  const ids: string[] = []
  for (let count = 0; count < 5; count++) {
    const { id } = await client.conversations.create({ project_id: 'site' })
    ids.push(await say(client, id, steps({ text: `answer ${count}` })))
  }
  await until(() => watchers.every(({ told }) => ids.every((id) => isComplete(told, id))), 'all ends')
  const seen = watchers.map(({ told }) =>
    ids.map((id) => {
      const events = eventsOf(told, id)
      return [events.every((event, index) => event.id === index + 1), textOf(events), events.at(-1)?.name]
    }),
  )
  const whole = ids.map((_, count) => [true, `answer ${count}`, 'complete'])
  expect(seen).toEqual([whole, whole])
})

it('reports no more than the token may see', async () => {
  const { client, clientWith } = await serve()
  await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
  const shop = watch(await clientWith('read', ['shop']))
  const all = watch(client)
  await until(() => shop.told.length > 0 && all.told.length > 0, 'both snapshots')
  const messages: string[] = []
  for (const project of ['site', 'shop']) {
    const { id } = await client.conversations.create({ project_id: project })
    messages.push(await say(client, id, 'hello'))
    await until(() => isComplete(all.told, messages.at(-1) ?? ''), 'the end')
  }
  await until(() => isComplete(shop.told, messages[1] ?? ''), 'the end')
  const projects = shop.told.flatMap((next) => (next.name === 'conversation' ? [next.data.project_id] : []))
  expect([new Set(projects), eventsOf(shop.told, messages[0] ?? '')]).toEqual([new Set(['shop']), []])
})

it('continues over a restart of the gateway, each event once', async () => {
  const place = new Place()
  const first = await serve(place)
  let { url } = first
  const client = new AetheelClient({
    baseUrl: 'http://gateway',
    token: await tokenFor(first, 'admin'),
    fetch: (address, init) => fetch(new URL(new URL(address).pathname, url), init),
  })
  const { id } = await client.conversations.create({ project_id: 'site' })
  const { told } = watch(client)
  await until(() => told.length > 0, 'a snapshot')
  const messageId = await say(client, id, steps({ text: 'begun ' }, { hold: 'restart' }, { text: 'done' }))
  await until(() => textOf(eventsOf(told, messageId)) !== '', 'text')
  await first.stop()
  release(place.site, 'restart')
  url = (await serve(place)).url
  await until(() => isComplete(told, messageId), 'the end')
  const events = eventsOf(told, messageId)
  expect([
    events.map((event) => event.id),
    events.filter(({ name }) => name === 'complete').map(({ data }) => data['status']),
    told.filter(({ name }) => name === 'snapshot').length,
  ]).toEqual([events.map((_, index) => index + 1), ['answered'], 2])
})

it('continues without a gap for a client that comes back', async () => {
  const { client, url, site } = await serve()
  const { id } = await client.conversations.create({ project_id: 'site' })
  const messageId = await say(client, id, steps({ text: 'one ' }, { hold: 'two' }, { drip: 'a b c d', everyMs: 30 }))
  const { told, leave } = watch(client)
  await until(() => told.length > 0, 'a snapshot')
  release(site, 'two')
  await until(() => eventsOf(told, messageId).length > 0, 'an event')
  await leave()
  const last = eventsOf(told, messageId).at(-1)?.id ?? 0
  const { ticket } = await client.ticket('/activity')
  const headers = { 'last-event-id': `${messageId}:${last}` }
  const response = await fetch(`${url}/activity?ticket=${ticket}`, { headers })
  const rest: number[] = []
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.includes('"name":"complete"') && text.endsWith('\n\n')) break
  }
  for (const [, data = ''] of text.matchAll(/^event: event\ndata: (.*)$/gm))
    rest.push((JSON.parse(data) as RunEvent).id)
  const refused = await fetch(`${url}/activity?ticket=${(await client.ticket('/activity')).ticket}`, {
    headers: { 'last-event-id': '17' },
  })
  expect([rest, text.startsWith('retry: 1000\n\nevent: snapshot\n'), refused.status]).toEqual([
    rest.map((_, index) => last + index + 1),
    true,
    400,
  ])
})
