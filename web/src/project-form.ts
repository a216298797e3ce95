// The values of a project form, and the request made from them. Pure.

import type { NewProject, Project, ProjectChanges, Provider, Template } from '../../src/client/aetheel-client.js'

/** Values as typed. */
export interface ProjectSettings {
  provider: Provider | ''
  model: string
  /** One per line. */
  tools: string
  timeout: string
  maxTurns: string
  isUntrusted: boolean
  permissions: 'allow' | 'ask' | ''
}

export type Source = 'template' | 'directory' | 'git'

export interface NewProjectForm extends ProjectSettings {
  name: string
  id: string
  source: Source
  directory: string
  gitUrl: string
  gitRef: string
  template: string
  /** By name. For an empty one the template's default applies. */
  variables: Record<string, string>
}

const NOTHING: ProjectSettings = {
  provider: '',
  model: '',
  tools: '',
  timeout: '',
  maxTurns: '',
  isUntrusted: false,
  permissions: '',
}

export const NEW_PROJECT: NewProjectForm = {
  ...NOTHING,
  name: '',
  id: '',
  source: 'template',
  directory: '',
  gitUrl: '',
  gitRef: '',
  template: '',
  variables: {},
}

export function settingsOf(project: Project): ProjectSettings {
  return {
    provider: project.agent_provider,
    model: project.model ?? '',
    tools: (project.allowed_tools ?? []).join('\n'),
    timeout: project.timeout === null ? '' : String(project.timeout),
    maxTurns: project.max_turns === null ? '' : String(project.max_turns),
    isUntrusted: project.is_untrusted,
    permissions: project.agent_permissions ?? '',
  }
}

export function newProjectOf(form: NewProjectForm, templates: Template[]): NewProject {
  const { provider, permissions } = form
  const tools = toolsIn(form.tools)
  return {
    ...(given(form.name) && { name: form.name.trim() }),
    ...(given(form.id) && { id: form.id.trim() }),
    ...sourceOf(form, templates),
    ...(provider !== '' && { agent_provider: provider }),
    ...(given(form.model) && { model: form.model.trim() }),
    ...(tools.length > 0 && { allowed_tools: tools }),
    ...(given(form.timeout) && { timeout: Number(form.timeout) }),
    ...(given(form.maxTurns) && { max_turns: Number(form.maxTurns) }),
    ...(form.isUntrusted && { is_untrusted: true }),
    ...(permissions !== '' && { agent_permissions: permissions }),
  }
}

/** Only what differs from the project, so that changes others made meanwhile are kept. */
export function changesOf(project: Project, name: string, settings: ProjectSettings): ProjectChanges {
  const before = settingsOf(project)
  const tools = toolsIn(settings.tools)
  const { provider, permissions } = settings
  return {
    ...(name.trim() !== project.name && { name: given(name) ? name.trim() : null }),
    ...(provider !== '' && provider !== before.provider && { agent_provider: provider }),
    ...(settings.model.trim() !== before.model && { model: given(settings.model) ? settings.model.trim() : null }),
    ...(tools.join('\n') !== before.tools && { allowed_tools: tools.length > 0 ? tools : null }),
    ...(settings.timeout.trim() !== before.timeout && { timeout: numberOrNull(settings.timeout) }),
    ...(settings.maxTurns.trim() !== before.maxTurns && { max_turns: numberOrNull(settings.maxTurns) }),
    ...(settings.isUntrusted !== before.isUntrusted && { is_untrusted: settings.isUntrusted }),
    ...(permissions !== before.permissions && { agent_permissions: permissions === '' ? null : permissions }),
  }
}

function sourceOf(form: NewProjectForm, templates: Template[]): Partial<NewProject> {
  if (form.source === 'directory') return { directory: form.directory.trim() }
  if (form.source === 'git') {
    return { git: { url: form.gitUrl.trim(), ...(given(form.gitRef) && { ref: form.gitRef.trim() }) } }
  }
  // Values typed for a previously chosen template stay in the form but are not sent.
  const known = templates.find(({ name }) => name === form.template)?.variables ?? []
  const variables = known.flatMap(({ name }) => {
    const value = form.variables[name] ?? ''
    return value === '' ? [] : [[name, value] as const]
  })
  return { template: { name: form.template, variables: Object.fromEntries(variables) } }
}

/** One per line, since a tool may contain spaces and commas, as `Bash(git log, git diff)` does. */
function toolsIn(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(given)
}

function numberOrNull(text: string): number | null {
  return given(text) ? Number(text) : null
}

function given(text: string): boolean {
  return text.trim() !== ''
}

/** The turn limit in effect. */
export function turnLimit({ max_turns: own, agent_capabilities: can }: LimitedProject): string {
  const turns = own ?? can.default_max_turns
  if (turns === null) return 'no turn limit'
  return `${turns} ${turns === 1 ? 'turn' : 'turns'}${own === null ? ' (default)' : ''}`
}

interface LimitedProject {
  max_turns: Project['max_turns']
  agent_capabilities: Pick<Project['agent_capabilities'], 'default_max_turns'>
}
