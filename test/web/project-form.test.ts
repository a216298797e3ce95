import { expect, it } from 'vitest'
import type { Project, Template } from '../../src/client/aetheel-client.js'
import { changesOf, NEW_PROJECT, newProjectOf, settingsOf, turnLimit } from '../../web/src/project-form.js'

const TEMPLATES: Template[] = [
  {
    name: 'go',
    description: '',
    is_built_in: true,
    variables: [
      { name: 'MODULE', description: '', default: null, pattern: null },
      { name: 'LICENSE', description: '', default: 'MIT', pattern: null },
    ],
  },
]

const PROJECT: Project = {
  id: 'shop',
  name: 'Shop',
  directory: '/srv/shop',
  is_default: false,
  pod: null,
  source: 'api',
  agent_provider: 'claudecode',
  agent_capabilities: {
    supports_session_continuation: true,
    supports_model_selection: true,
    supports_tool_control: true,
    supports_max_turns: true,
    supports_streaming: true,
    supported_models: [],
    default_model: null,
    default_max_turns: 25,
    max_prompt_length: 0,
  },
  model: 'opus',
  allowed_tools: ['Read'],
  timeout: 90,
  max_turns: null,
  is_untrusted: false,
  agent_permissions: null,
  created_at: '2026-11-16T00:00:00.000Z',
  updated_at: '2026-11-16T00:00:00.000Z',
}

it('sends the filled-in fields, and the variables of the chosen template only', () => {
  const form = {
    ...NEW_PROJECT,
    name: ' Shop ',
    template: 'go',
    variables: { MODULE: 'example.test/shop', LICENSE: '', OTHER: 'of another template' },
    directory: '/typed/before',
    tools: 'Read\n\n Bash(git log, git diff) \n',
    timeout: '1.5',
  }
  expect(newProjectOf(form, TEMPLATES)).toEqual({
    name: 'Shop',
    template: { name: 'go', variables: { MODULE: 'example.test/shop' } },
    allowed_tools: ['Read', 'Bash(git log, git diff)'],
    timeout: 1.5,
  })
})

it('sends a directory or a repository if chosen', () => {
  const form = { ...NEW_PROJECT, directory: '/srv/a ', gitUrl: 'https://example.test/a.git', gitRef: '' }
  expect([
    newProjectOf({ ...form, source: 'directory' }, []),
    newProjectOf({ ...form, source: 'git' }, []),
    newProjectOf({ ...form, source: 'git', gitRef: 'main' }, []),
  ]).toEqual([
    { directory: '/srv/a' },
    { git: { url: 'https://example.test/a.git' } },
    { git: { url: 'https://example.test/a.git', ref: 'main' } },
  ])
})

it('sends nothing if nothing was changed', () => {
  expect(changesOf(PROJECT, PROJECT.name, settingsOf(PROJECT))).toEqual({})
})

it('resets emptied fields', () => {
  const settings = {
    ...settingsOf(PROJECT),
    model: ' ',
    tools: '\n',
    timeout: '',
    maxTurns: '5',
    permissions: 'ask' as const,
  }
  expect(changesOf(PROJECT, '', settings)).toEqual({
    name: null,
    model: null,
    allowed_tools: null,
    timeout: null,
    max_turns: 5,
    agent_permissions: 'ask',
  })
})

it.each([
  [null, 25, '25 turns (default)'],
  [1, 25, '1 turn'],
  [40, 25, '40 turns'],
  [null, null, 'no turn limit'],
])('shows the limit of turns that holds: %j, with %j as the default, as %s', (own, byDefault, shown) => {
  expect(turnLimit({ max_turns: own, agent_capabilities: { default_max_turns: byDefault } })).toEqual(shown)
})
