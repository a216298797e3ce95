import type { Agent } from '../../../src/client/aetheel-client.js'
import { formatCount } from '../format.js'

type Capabilities = Agent['capabilities']

const CLAIMS: Array<[keyof Capabilities, string]> = [
  ['supports_session_continuation', 'goes on in its session'],
  ['supports_streaming', 'streams its text'],
  ['supports_model_selection', 'model can be chosen'],
  ['supports_tool_control', 'tools can be restricted'],
  ['supports_max_turns', 'turns can be limited'],
]

/** What an agent can do, and what it cannot. */
export function CapabilityList({ capabilities }: { capabilities: Capabilities }) {
  const { default_model: model, max_prompt_length: longest } = capabilities
  return (
    <ul class="chips" aria-label="What it can do">
      {CLAIMS.map(([key, words]) => (
        <li key={key} class={capabilities[key] === true ? 'can' : 'cannot'}>
          <span aria-hidden="true">{capabilities[key] === true ? '✓' : '–'}</span>{' '}
          {capabilities[key] !== true && <span class="hidden">not: </span>}
          {words}
        </li>
      ))}
      {model !== null && <li>model {model}</li>}
      {longest > 0 && <li>messages up to {formatCount(longest)} characters</li>}
    </ul>
  )
}
