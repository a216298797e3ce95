import type { Agent } from '../../../src/client/aetheel-client.js'

/** Suggests models: those used recently with the agent, then those its command line lists. */
export function ModelSuggestions({ id, agent }: { id: string; agent: Agent | undefined }) {
  const models = new Set([...(agent?.recent_models ?? []), ...(agent?.capabilities.supported_models ?? [])])
  return (
    <datalist id={id}>
      {[...models].map((model) => (
        <option key={model}>{model}</option>
      ))}
    </datalist>
  )
}
