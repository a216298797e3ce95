import { expect, it } from 'vitest'
import { inboundSchema } from '../../src/config/inbound.js'
import { chooseAgent, chooseWorkplace, describeWorkplace, workplaceKey } from '../../src/runtime/agent-choice.js'

const config = { agentBackend: 'claude' } as const

it.each([
  [{}, undefined, { backend: 'claude' }],
  [{ model: 'small' }, undefined, { backend: 'claude', model: 'small' }],
  [{}, { backend: 'codex', model: 'large' }, { backend: 'codex', model: 'large' }],
  [{}, { model: 'large' }, { backend: 'claude', model: 'large' }],
  [{ model: 'small' }, { backend: 'codex', model: 'large' }, { backend: 'codex', model: 'small' }],
  [{ backend: 'pi' }, { backend: 'codex', model: 'large' }, { backend: 'pi' }],
  [{ backend: 'codex' }, { backend: 'codex', model: 'large' }, { backend: 'codex', model: 'large' }],
])('chooses for the conversation %j of the project %j', (conversation, project, choice) => {
  expect(chooseAgent(conversation, project, config)).toEqual(choice)
})

const inbound = inboundSchema.parse({ reply: { agent: { kind: 'pi' }, cwd: '/relay' } })

it.each([
  [{ channel: 'whatsapp' }, undefined, { backend: 'pi' }],
  [{ channel: 'discord' }, undefined, { backend: 'claude' }],
  [{ channel: 'whatsapp' }, { backend: 'codex', model: 'large' }, { backend: 'codex', model: 'large' }],
  [{ channel: 'whatsapp' }, { model: 'large' }, { backend: 'pi', model: 'large' }],
  [{ channel: 'whatsapp', backend: 'claude' }, { model: 'large' }, { backend: 'claude' }],
])('chooses for the conversation %j of the project %j where messages are relayed', (conversation, project, choice) => {
  expect(chooseAgent(conversation, project, { ...config, inbound })).toEqual(choice)
})

it.each([
  ['whatsapp', undefined, '/relay'],
  ['whatsapp', { directory: '/project' }, '/project'],
  ['discord', undefined, '/work'],
])('an agent of %s in the project %j works in %s', (channel, project, directory) => {
  const workplace = chooseWorkplace(channel, project, { workingDir: '/work', inbound })
  expect([workplace, workplaceKey(workplace), describeWorkplace(workplace)]).toEqual([
    { directory },
    directory,
    directory,
  ])
})

it('an agent of a project in a pod works there, and nowhere on this machine', () => {
  const pod = { namespace: 'agents', selector: 'app=web', container: 'agent' }
  const project = { id: 'web', directory: '/workspace', pod }
  const workplace = chooseWorkplace('whatsapp', project, { workingDir: '/work', inbound })
  expect([workplace, workplaceKey(workplace), describeWorkplace(workplace)]).toEqual([
    { directory: '/workspace', pod },
    'pod::agents:app=web:agent:/workspace',
    '/workspace in the pod with app=web (container agent, namespace agents)',
  ])
})
