import { expect, it, onTestFinished } from 'vitest'
import { createApp } from '../../../src/service/app.js'
import { startLocalCluster } from '../../kubernetes/local-cluster.js'
import { until } from '../../kit/waiting.js'
import { type Ask, askOf, Place, startService, tokenFor } from './stage.js'

it('a program of a project in a pod runs there', async () => {
  const { ask, cluster } = await setup()
  cluster.container['WHERE'] = 'in the pod'
  const { body } = await ask('POST', '/projects/web/shell', { command: ['sh', '-c', 'echo "$WHERE, $PWD"'] })
  const { state, result, exit_code: exitCode } = await ended(ask, body.command_id)
  expect([state, result, exitCode]).toEqual(['answered', 'in the pod, /tmp\n', 0])
})

it('the command and its stream say what is wrong with the pod', async () => {
  const { ask, cluster } = await setup()
  cluster.refuse('exec', 'Error from server (Forbidden): pods "web-0" is forbidden: cannot create resource "pods/exec"')
  const { body } = await ask('POST', '/projects/web/execute', { prompt: 'Hello' })
  const command = await ended(ask, body.command_id)
  const { text: stream } = await ask('GET', `/projects/web/commands/${body.command_id}/events`)
  const [, complete = '{}'] = /event: agent_complete\ndata: (.*)/.exec(stream) ?? []
  expect([command, command.runs, JSON.parse(complete)]).toMatchObject([
    { state: 'failed', error: { reason: 'spawn', pod_problem: 'forbidden', message: expect.any(String) } },
    [{ error: { pod_problem: 'forbidden' } }],
    { is_error: true, reason: 'spawn', pod_problem: 'forbidden' },
  ])
})

/** The project `web` in a pod whose containers are this machine. */
async function setup() {
  const cluster = await startLocalCluster([{ name: 'web-0' }])
  onTestFinished(() => cluster.close())
  const place = new Place()
  const { PATH = '', ...access } = cluster.environment
  Object.assign(place.environment, { ...access, PATH: `${PATH}:${place.environment['PATH']}` })
  const dependencies = await startService(place)
  const app = await createApp(dependencies)
  onTestFinished(() => app.close())
  const ask = askOf(app, await tokenFor(dependencies, 'admin'))
  await ask('POST', '/projects', { id: 'web', pod: { name: 'web-0' }, directory: '/tmp' })
  return { ask, cluster }
}

async function ended(ask: Ask, commandId: string) {
  return until(async () => {
    const { body } = await ask('GET', `/projects/web/commands/${commandId}`)
    return (body.state === 'answered' || body.state === 'failed') && body
  }, 'the end of a command')
}
