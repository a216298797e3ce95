import { useId } from 'preact/hooks'
import type { Agent } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import type { FormProblems } from '../form-problems.js'
import type { ProjectSettings } from '../project-form.js'
import { Field, TextField } from './field.js'
import { ModelSuggestions } from './model-suggestions.js'

/** The setting fields, as the API names them. */
export const SETTING_FIELDS = [
  'agent_provider',
  'model',
  'allowed_tools',
  'timeout',
  'max_turns',
  'is_untrusted',
  'agent_permissions',
]

/** A project's agent and limits. */
export function ProjectSettingsFields({
  settings,
  agents,
  problems,
  onChange,
}: {
  settings: ProjectSettings
  agents: Agent[]
  problems: FormProblems
  onChange: (changes: Partial<ProjectSettings>) => void
}) {
  const models = useId()
  const standard = agents.find(({ is_default: isDefault }) => isDefault)
  const agent = agents.find(({ provider }) => provider === settings.provider) ?? standard
  const can = agent?.capabilities
  const name = agent ? agentName(agent.provider) : 'This agent'
  return (
    <>
      <div class="columns">
        <Field label="Agent" problem={problems.of('agent_provider')}>
          {(control) => (
            <select
              {...control}
              value={settings.provider}
              onChange={({ currentTarget: { value } }) =>
                onChange({ provider: agents.find(({ provider }) => provider === value)?.provider ?? '' })
              }
            >
              {settings.provider === '' && (
                <option value="">{standard ? `Default: ${agentName(standard.provider)}` : 'Default'}</option>
              )}
              {agents.map(({ provider, status }) => (
                <option key={provider} value={provider}>
                  {agentName(provider)}
                  {status === 'available' ? '' : ' (unavailable)'}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="Model"
          hint={`Default: ${can?.default_model ?? 'chosen by the agent'}`}
          problem={problems.of('model')}
        >
          {(control) => (
            <>
              <input
                {...control}
                list={models}
                spellcheck={false}
                value={settings.model}
                onInput={(event) => onChange({ model: event.currentTarget.value })}
              />
              <ModelSuggestions id={models} agent={agent} />
            </>
          )}
        </Field>
        <TextField
          label="Time limit (seconds)"
          hint="Default: the gateway's time limit"
          problem={problems.of('timeout')}
          step="any"
          value={settings.timeout}
          onInput={(timeout) => onChange({ timeout })}
        />
        <TextField
          label="Turn limit"
          hint={
            can?.supports_max_turns === false
              ? `${name} does not support a turn limit`
              : `Default: ${can?.default_max_turns ?? 'no limit'}`
          }
          problem={problems.of('max_turns')}
          step="1"
          value={settings.maxTurns}
          onInput={(maxTurns) => onChange({ maxTurns })}
        />
      </div>
      <Field
        label="Allowed tools"
        hint={
          can?.supports_tool_control === false
            ? `${name} does not support tool restrictions`
            : 'One per line, as the agent names them. Leave empty to allow all.'
        }
        problem={problems.of('allowed_tools')}
      >
        {(control) => (
          <textarea
            {...control}
            rows={3}
            spellcheck={false}
            value={settings.tools}
            onInput={(event) => onChange({ tools: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Approvals" problem={problems.of('agent_permissions')}>
        {(control) => (
          <select
            {...control}
            value={settings.permissions}
            onChange={({ currentTarget: { value } }) =>
              onChange({ permissions: value === 'ask' || value === 'allow' ? value : '' })
            }
          >
            <option value="">Default</option>
            <option value="ask">Ask before using a tool</option>
            <option value="allow">Allow everything</option>
          </select>
        )}
      </Field>
      <label class="check">
        <input
          type="checkbox"
          checked={settings.isUntrusted}
          onChange={(event) => onChange({ isUntrusted: event.currentTarget.checked })}
        />
        Untrusted: its files cannot configure the agent or run automatically
      </label>
      {problems.of('is_untrusted') !== undefined && <p class="problem">{problems.of('is_untrusted')}</p>}
    </>
  )
}
