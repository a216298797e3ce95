import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { GivenProvider, NewConversation as Wanted } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { ErrorNote } from '../parts/error-note.js'
import { ModelSuggestions } from '../parts/model-suggestions.js'
import { hrefOf } from '../router.js'
import { useResource } from '../use-resource.js'
import { Composer } from './composer.js'
import { drafts } from './drafts.js'
import { AgentOptions, NO_PROJECT, ProjectOptions } from './options.js'

const DRAFT = 'new'

/** A conversation that begins with its first message. */
export function NewConversation() {
  const { projects: own } = useMe()
  const projects = useResource(() => api.projects.list(), [])
  const agents = useResource(() => api.agents.list(), [])
  /** Of a first message that did not get through, as far as is known: the next attempt does not begin another one. */
  const begun = useRef(drafts.get(DRAFT).begun)
  const before = begun.current?.wanted
  const [chosen, setChosen] = useState(before ? (before.project_id ?? '') : own?.[0])
  const projectId = chosen ?? projects.value?.find((project) => project.is_default)?.id ?? ''
  const [provider, setProvider] = useState<GivenProvider | undefined>(before?.agent_provider)
  const suggestions = useId()
  const [model, setModel] = useState(before?.model ?? '')
  const isHere = useRef(true)
  useEffect(
    () => () => {
      isHere.current = false
    },
    [],
  )
  const begin = async (): Promise<string> => {
    const wanted: Wanted = {
      ...(projectId !== '' && { project_id: projectId }),
      ...(provider !== undefined && { agent_provider: provider }),
      ...(model.trim() !== '' && { model: model.trim() }),
    }
    if (!begun.current || JSON.stringify(begun.current.wanted) !== JSON.stringify(wanted)) {
      begun.current = { id: (await api.conversations.create(wanted)).id, wanted }
      drafts.begin(DRAFT, begun.current)
    }
    return begun.current.id
  }
  const failed = projects.error ?? agents.error
  return (
    <section class="chat-pane" aria-label="New conversation">
      <header class="chat-head">
        <a class="chat-back" href={hrefOf('conversations')}>
          ← All conversations
        </a>
        <h2>New conversation</h2>
      </header>
      {failed !== undefined && (
        <ErrorNote
          words={failed}
          onRetry={() => {
            projects.reload()
            agents.reload()
          }}
        />
      )}
      <div class="chat-choices">
        <label>
          Project
          <select value={projectId} onChange={(event) => setChosen(event.currentTarget.value)}>
            <ProjectOptions
              projects={projects.value ?? []}
              chosen={projectId || null}
              none={own === null ? NO_PROJECT : undefined}
            />
          </select>
        </label>
        <label>
          Agent
          <select
            value={provider ?? ''}
            onChange={({ currentTarget: { value } }) =>
              setProvider(agents.value?.find((agent) => agent.provider === value)?.provider)
            }
          >
            <AgentOptions agents={agents.value ?? []} />
          </select>
        </label>
        <label>
          Model
          <input
            list={suggestions}
            value={model}
            maxLength={200}
            placeholder="The agent's own"
            onInput={(event) => setModel(event.currentTarget.value)}
          />
          <ModelSuggestions id={suggestions} agent={agents.value?.find((agent) => agent.provider === provider)} />
        </label>
      </div>
      <Composer
        draftId={DRAFT}
        placeholder="What should the agent do?"
        send={async ({ text, key }) => {
          const id = await begin()
          await api.conversations.send(id, text, { idempotencyKey: key })
          if (isHere.current) location.hash = hrefOf('conversations', id)
        }}
      />
    </section>
  )
}
