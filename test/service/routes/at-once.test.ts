import { describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase, postgresUrl } from '../../kit/postgres.js'
import { steps } from '../../kit/steps-agent.js'
import { commandIn, openStage, type Stage } from './stage.js'

describe.skipIf(postgresUrl() === undefined)('requests at once on PostgreSQL', () => {
  it('have one agent at a time work in a session', async () => {
    const { ask, gateway, journal, release } = await openPostgresStage()
    const first = await ask('POST', '/projects/site/execute', { prompt: 'one' })
    const { session_id: sessionId } = await commandIn(ask, first.body.command_id, 'answered')
    const { conversationId } = (await gateway.store.inbox.get(first.body.command_id)) ?? { conversationId: '' }
    await gateway.store.sessions.reset(conversationId, Date.now())
    const body = { prompt: steps({ hold: 'go' }), session_id: sessionId }
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask('POST', '/projects/site/execute', body)))
    const messages = await Promise.all(answers.map((answer) => gateway.store.inbox.get(answer.body.command_id)))
    release('go')
    for (const answer of answers) await commandIn(ask, answer.body.command_id, 'answered')
    expect([
      answers.map(({ status }) => status),
      new Set(messages.map((message) => message?.conversationId)).size,
      journal().map((entry) => [entry.sessionId, entry.isResumed]),
    ]).toEqual([[202, 202, 202, 202], 1, [false, true, true, true, true].map((isResumed) => [sessionId, isResumed])])
  })

  it('do not remove a project under a command that is taken', async () => {
    const { ask } = await openPostgresStage()
    for (let round = 0; round < 10; round++) {
      const id = `round-${round}`
      await ask('POST', '/projects', { id, template: 'empty' })
      const [taken, removed] = await Promise.all([
        ask('POST', `/projects/${id}/shell`, { command: ['sleep', '1000'] }),
        ask('DELETE', `/projects/${id}`),
      ])
      expect(['202 409', '404 204']).toContain(`${taken.status} ${removed.status}`)
      if (taken.status === 202) await ask('POST', `/projects/${id}/commands/${taken.body.command_id}/cancel`)
    }
  })
})

async function openPostgresStage(): Promise<Stage> {
  const { url, drop } = await createDatabase()
  onTestFinished(drop)
  return openStage({ databaseUrl: url })
}
