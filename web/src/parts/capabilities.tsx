import type { Agent } from '../../../src/client/aetheel-client.js'
import { formatCount } from '../format.js'
import { Icon } from './icon.js'

type Capabilities = Agent['capabilities']

const CLAIMS: Array<[keyof Capabilities, string]> = [
  ['supports_session_continuation', 'Resumes sessions'],
  ['supports_streaming', 'Streams answers'],
  ['supports_model_selection', 'Model selection'],
  ['supports_tool_control', 'Tool restrictions'],
  ['supports_max_turns', 'Turn limit'],
]

/** What an agent supports, and what it does not. */
export function CapabilityList({ capabilities }: { capabilities: Capabilities }) {
  const { default_model: model, max_prompt_length: longest } = capabilities
  return (
    <ul class="chips" aria-label="Capabilities">
      {CLAIMS.map(([key, words]) => (
        <li key={key} class={capabilities[key] === true ? 'can' : 'cannot'}>
          <Icon name={capabilities[key] === true ? 'check' : 'close'} />
          {capabilities[key] !== true && <span class="hidden">Not supported: </span>}
          {words}
        </li>
      ))}
      {model !== null && <li>Model {model}</li>}
      {longest > 0 && <li>Messages up to {formatCount(longest)} characters</li>}
    </ul>
  )
}
