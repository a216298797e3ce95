import { expect, it } from 'vitest'
import { codeOf, serve } from './served.js'
import { steps } from '../../kit/steps-agent.js'

it('counts usage and outcomes of runs, for tokens that may see them', async () => {
  const { client, clientWith, latest } = await serve()
  await client.projects.create({ name: 'Shop', template: { name: 'empty' } })
  for (const [project, text] of [
    ['site', steps({ text: 'Hello' })],
    ['site', steps({ fail: 'Invalid API key' })],
    ['shop', steps({ text: 'Hello' })],
  ] as const) {
    const { id } = await client.conversations.create({ project_id: project })
    await client.conversations.send(id, text)
    await latest(id, 'answered', 'failed')
  }
  const today = new Date().toISOString().slice(0, 10)
  const days = await client.figures()
  expect(days).toMatchObject({
    group: 'day',
    to: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    total: { key: null, runs: 3, answered: 2, failed: 1, errors: { auth: 1 } },
  })
  const [day] = days.figures
  expect([day?.runs, day?.answered, day?.input_tokens, day?.cost_usd, day?.first_text_ms.p95]).toEqual([
    3,
    2,
    200,
    0.5,
    expect.any(Number),
  ])
  const shop = await clientWith('read', ['shop'])
  const keys = async (query: object, who = client) =>
    (await who.figures(query)).figures.map(({ key, runs }) => [key, runs])
  expect([
    await keys({ group: 'agent' }),
    await keys({ group: 'project' }),
    await keys({ group: 'project', project: 'shop' }),
    await keys({ group: 'project' }, shop),
    await keys({ agent: 'codex' }),
    await keys({ from: '2020-01-01', to: '2020-12-31' }),
    (await client.figures({ from: '2020-02-01', to: '2020-02-29' })).total.runs,
    await codeOf(client.figures({ from: '2020-01-01', to: '2021-01-02' })),
    await codeOf(client.figures({ from: today, to: '2020-01-01' })),
    await codeOf(client.figures({ from: '2026-02-30' })),
    await codeOf(client.figures({ to: '0000-01-02' })),
    await codeOf(client.figures({ project: 'si\0te' })),
    await codeOf(client.conversations.list({ channel: '\0' })),
    await codeOf(client.projects.get('\0')),
  ]).toEqual([
    [['claudecode', 3]],
    [
      ['shop', 1],
      ['site', 2],
    ],
    [['shop', 1]],
    [['shop', 1]],
    [],
    [],
    0,
    'request_invalid',
    'request_invalid',
    'request_invalid',
    'request_invalid',
    'request_invalid',
    'request_invalid',
    'request_invalid',
  ])
})
