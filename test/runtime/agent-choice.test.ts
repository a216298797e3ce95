import { expect, it } from 'vitest'
import { chooseAgent } from '../../src/runtime/agent-choice.js'

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
