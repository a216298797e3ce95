import { useId } from 'preact/hooks'
import type { Agent } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import type { FormProblems } from '../form-problems.js'
import type { ProjectSettings } from '../project-form.js'
import { Field, TextField } from './field.js'
import { ModelSuggestions } from './model-suggestions.js'

/** The fields of settings, as the API names them. */
export const SETTING_FIELDS = [
  'agent_provider',
  'model',
  'allowed_tools',
  'timeout',
  'max_turns',
  'is_untrusted',
  'agent_permissions',
]

/** Which agent works for a project, and within which limits. */
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
                <option value="">
                  {standard ? `${agentName(standard.provider)}, that of new projects` : 'The usual'}
                </option>
              )}
              {agents.map(({ provider, status }) => (
                <option key={provider} value={provider}>
                  {agentName(provider)}
                  {status === 'available' ? '' : ', not available'}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="Model"
          hint={`Empty: ${can?.default_model ?? 'the choice of the agent'}.`}
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
          label="Longest run, in seconds"
          hint="Empty: as the gateway has it."
          problem={problems.of('timeout')}
          step="any"
          value={settings.timeout}
          onInput={(timeout) => onChange({ timeout })}
        />
        <TextField
          label="Most turns of a run"
          hint={
            can?.supports_max_turns === false
              ? `${name} cannot be limited so.`
              : `Empty: ${can?.default_max_turns ?? 'as the gateway has it'}.`
          }
          problem={problems.of('max_turns')}
          step="1"
          value={settings.maxTurns}
          onInput={(maxTurns) => onChange({ maxTurns })}
        />
      </div>
      <Field
        label="Tools it may use"
        hint={
          can?.supports_tool_control === false
            ? `${name} cannot be restricted to tools.`
            : 'One on each line, by the names of the agent. Empty: all.'
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
      <Field label="Before it uses a tool" problem={problems.of('agent_permissions')}>
        {(control) => (
          <select
            {...control}
            value={settings.permissions}
            onChange={({ currentTarget: { value } }) =>
              onChange({ permissions: value === 'ask' || value === 'allow' ? value : '' })
            }
          >
            <option value="">as the gateway has it</option>
            <option value="ask">a person is asked</option>
            <option value="allow">nobody is asked</option>
          </select>
        )}
      </Field>
      <label class="check">
        <input
          type="checkbox"
          checked={settings.isUntrusted}
          onChange={(event) => onChange({ isUntrusted: event.currentTarget.checked })}
        />
        Its files are not trusted: nothing in them configures the agent, or runs by itself
      </label>
      {problems.of('is_untrusted') !== undefined && <p class="problem">{problems.of('is_untrusted')}</p>}
    </>
  )
}
