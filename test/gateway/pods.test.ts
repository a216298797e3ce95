import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, type TestContext } from 'vitest'
import { startLocalCluster } from '../kubernetes/local-cluster.js'
import { until } from '../kit/waiting.js'
import { ECHO_AGENT } from '../kit/agents.js'
import { Stage } from '../kit/stage.js'

/** A gateway on a cluster with the pod `web-0`, in which Claude is, and the project `web` of it. */
async function setup(test: TestContext) {
  const cluster = await startLocalCluster([{ name: 'web-0', namespace: 'agents' }])
  onTestFinished(() => cluster.close())
  const stage = new Stage(test.onTestFinished)
  const container = stage.makeDirectory('container')
  writeFileSync(join(container, 'claude'), ECHO_AGENT, { mode: 0o755 })
  cluster.container['PATH'] = `${container}:${process.env['PATH']}`
  const { PATH = '', ...access } = cluster.environment
  Object.assign(stage.environment, { ...access, PATH: `${PATH}:${stage.environment.PATH}` })
  const workspace = stage.makeDirectory('workspace')
  const web = { pod: { namespace: 'agents', name: 'web-0' }, directory: workspace }
  const start = () => stage.start({}, { projects: { web } })
  return { cluster, workspace, start, home: `pod::agents:web-0::${workspace}` }
}

it('a message of a project in a pod is answered there, in a session of its directory there', async (test) => {
  const { workspace, start, home } = await setup(test)
  const { gateway, channel } = await start()
  const place = { address: 'a', projectId: 'web' }
  const { conversationId, messageId } = await channel.say(place, 'Hello')
  const [reply] = await until(() => channel.replies.length > 0 && channel.replies, 'a reply')
  const [run] = await gateway.store.runs.ofMessage(messageId)
  const session = await gateway.store.sessions.get(conversationId)
  const status = await channel.command(place, '/status')
  expect([reply?.text, run?.directory, session?.directory, await gateway.store.ledger.processesOf(gateway.id)]).toEqual(
    ['Hello', home, home, []],
  )
  expect(status).toContain(`directory: ${workspace} in the pod web-0 (namespace agents)`)
})

it('files that an agent in a pod names are not looked for on this machine', async (test) => {
  const { workspace, start } = await setup(test)
  writeFileSync(join(workspace, 'a.txt'), 'here')
  const { channel } = await start()
  await channel.say({ address: 'a', projectId: 'web' }, 'MEDIA: a.txt')
  const [reply] = await until(() => channel.replies.length > 0 && channel.replies, 'a reply')
  expect([reply?.text, reply?.files]).toEqual(['MEDIA: a.txt', undefined])
})

it('the person is told what is wrong with the pod', async (test) => {
  const { cluster, start } = await setup(test)
  const { gateway, channel } = await start()
  cluster.refuse('exec', 'Error from server (Forbidden): pods "web-0" is forbidden: cannot create resource "pods/exec"')
  const { messageId } = await channel.say({ address: 'a', projectId: 'web' }, 'Hello')
  const [reply] = await until(() => channel.replies.length > 0 && channel.replies, 'a reply')
  const [run] = await gateway.store.runs.ofMessage(messageId)
  expect([reply?.text.split('\n')[0], run?.result?.failure?.podProblem]).toEqual([
    "The cluster does not allow the gateway to work in this project's pod.",
    'forbidden',
  ])
})
