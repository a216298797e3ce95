import { onTestFinished, expect, it } from 'vitest'
import { AetheelClient } from '../../../src/client/aetheel-client.js'
import { startHttpServer } from '../../../src/service/server.js'
import { askNow } from '../../approvals/ask-now.js'
import { BASH } from '../../approvals/stage.js'
import { steps } from '../../kit/steps-agent.js'
import { Place, openStage, startService, tokenFor } from './stage.js'

/** A gateway behind a real socket, with a command of `site` that runs until it is stopped. */
async function openScene() {
  const dependencies = await startService(new Place())
  const { gateway } = dependencies
  const server = await startHttpServer(dependencies)
  onTestFinished(() => server.close())
  const clientFor = async (...about: Parameters<typeof tokenFor> extends [unknown, ...infer Rest] ? Rest : never) =>
    new AetheelClient({ baseUrl: server.url, token: await tokenFor(dependencies, ...about) })
  const client = await clientFor('run')
  const command = await client.execute('site', { prompt: steps({ hold: 'it' }) })
  return { gateway, client, clientFor, command }
}

it('are listed, looked at and answered once', async () => {
  const { gateway, client, command } = await openScene()
  const { approval, answer } = await askNow(gateway, BASH)
  const waiting = await client.approvals.list({ state: 'asked', project: 'site' })
  const shown = await client.approvals.get(approval.id)
  const answered = await client.approvals.answer(approval.id, { decision: 'allow' })
  const late = await client.approvals.answer(approval.id, { decision: 'deny' }).catch((error: unknown) => error)
  const view = {
    id: approval.id,
    state: 'asked',
    project_id: 'site',
    message_id: command.id,
    run_id: approval.runId,
    agent_provider: 'claudecode',
    tool: 'Bash',
    input: BASH.toolInput,
    summary: 'Bash: npm install',
    can_remember: true,
    asked_at: new Date(approval.askedAt).toISOString(),
    deadline: new Date(approval.deadline).toISOString(),
    answered_at: null,
    answered_by: null,
  }
  expect([waiting, shown, answered, late, await answer]).toEqual([
    { approvals: [view], next: null },
    view,
    { ...view, state: 'allowed', answered_at: expect.any(String), answered_by: 'run token' },
    expect.objectContaining({
      code: 'conflict',
      message: expect.stringContaining('Too late. Allowed by run token: Bash: npm install'),
    }),
    { isAllowed: true },
  ])
  await command.cancel()
})

it('are refused with a reason for the agent, listed by page, and recorded', async () => {
  const { gateway, client, clientFor, command } = await openScene()
  const first = await askNow(gateway, BASH)
  await client.approvals.answer(first.approval.id, { decision: 'deny', message: 'Use\0 pnpm.' })
  const second = await askNow(gateway, BASH)
  const page = await client.approvals.list({ limit: 1 })
  const rest = await client.approvals.list({ limit: 1, before: page.next ?? '' })
  await command.cancel()
  const admin = await clientFor('admin')
  const [entry] = (await admin.audit()).entries.filter(({ subject }) => subject === first.approval.id)
  expect([
    await first.answer,
    page.approvals.map(({ id }) => id),
    rest.approvals.map(({ id, state }) => [id, state]),
    rest.next,
    (await client.approvals.get(second.approval.id)).state,
    [entry?.action, entry?.actor],
  ]).toEqual([
    { isAllowed: false, message: 'Use pnpm.' },
    [second.approval.id],
    [[first.approval.id, 'denied']],
    null,
    'withdrawn',
    ['approval.deny', expect.stringMatching(/^token:.* run token$/)],
  ])
})

it('leave rules, which can be looked at and taken back', async () => {
  const { gateway, client, clientFor, command } = await openScene()
  const { approval, answer } = await askNow(gateway, BASH)
  await client.approvals.answer(approval.id, { decision: 'allow', remember: 'this' })
  await answer
  const admin = await clientFor('admin', ['site'])
  const rules = await admin.approvals.rules({ project: 'site' })
  await admin.approvals.removeRule(rules[0]?.id ?? '')
  const again = await admin.approvals.removeRule(rules[0]?.id ?? '').catch((error: unknown) => error)
  expect([rules, await admin.approvals.rules(), again]).toEqual([
    [
      {
        id: expect.any(String),
        project_id: 'site',
        agent_provider: 'claudecode',
        tool: 'Bash',
        subject: 'npm install',
        created_at: expect.any(String),
        created_by: 'run token',
      },
    ],
    [],
    expect.objectContaining({ code: 'not_found' }),
  ])
  await command.cancel()
})

it('are not for tokens of other projects, nor answered by those that may only read', async () => {
  const { gateway, clientFor, command, client } = await openScene()
  const { approval, answer } = await askNow(gateway, BASH)
  const [other, own, reader] = [
    await clientFor('run', ['shop']),
    await clientFor('run', ['site', 'shop']),
    await clientFor('read', ['site']),
  ]
  const codeOf = (error: { code: string }): string => error.code
  expect([
    await other.approvals.list(),
    await other.approvals.list({ project: 'site' }).catch(codeOf),
    await other.approvals.get(approval.id).catch(codeOf),
    await other.approvals.answer(approval.id, { decision: 'allow' }).catch(codeOf),
    await reader.approvals.answer(approval.id, { decision: 'allow' }).catch(codeOf),
    (await reader.approvals.list()).approvals.length,
    (await own.approvals.answer(approval.id, { decision: 'deny' })).state,
  ]).toEqual([{ approvals: [], next: null }, 'forbidden', 'not_found', 'not_found', 'forbidden', 1, 'denied'])
  await answer
  await client.command('site', command.id).cancel()
})

it.each([
  [{ decision: 'maybe' }, 'decision'],
  [{ decision: 'deny', remember: 'tool' }, 'remember'],
  [{ decision: 'allow', remember: 'all' }, 'remember'],
  [{ decision: 'allow', always: true }, 'body'],
  [{}, 'decision'],
])('says what is wrong with %j', async (body, path) => {
  const { ask } = await openStage()
  const { status, body: answer } = await ask('POST', '/approvals/00000000-0000-4000-8000-000000000000', body)
  expect([status, answer.error.code, answer.error.problems.map((problem) => problem.path)]).toEqual([
    400,
    'request_invalid',
    [path],
  ])
})

it('are asked for by projects that say so', async () => {
  const { ask } = await openStage()
  const changed = await ask('PATCH', '/projects/shop', { agent_permissions: 'ask' })
  const back = await ask('PATCH', '/projects/shop', { agent_permissions: null })
  const wrong = await ask('PATCH', '/projects/shop', { agent_permissions: 'deny' })
  const permissions = [changed, back].map(
    ({ body }) => (body as unknown as { agent_permissions: string }).agent_permissions,
  )
  expect([permissions, wrong.status]).toEqual([['ask', null], 400])
})
