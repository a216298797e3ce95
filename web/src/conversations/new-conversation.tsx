import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { GivenProvider, NewConversation as Wanted } from '../../../src/client/aetheel-client.js'
import { withLocalTimes } from '../../../src/core/local-time.js'
import { api } from '../api.js'
import { useLive } from '../live.js'
import { useMe } from '../me.js'
import { ErrorNote } from '../parts/error-note.js'
import { ModelSuggestions } from '../parts/model-suggestions.js'
import { hrefOf } from '../router.js'
import { toast } from '../toasts.js'
import { useResource } from '../use-resource.js'
import { upload } from './attachments.js'
import { Composer } from './composer.js'
import { drafts } from './drafts.js'
import { AgentOptions, NO_PROJECT, ProjectOptions } from './options.js'

const DRAFT = 'new'

/** Creates a conversation with its first message. Contract: its `key` is the project. */
export function NewConversation({ inProject }: { inProject?: string | undefined }) {
  const { projects: own } = useMe()
  const projects = useResource(() => api.projects.list(), [])
  const agents = useResource(() => api.agents.list(), [])
  /** Created for a first message that may not have got through. The next attempt uses it again. */
  const begun = useRef(drafts.get(DRAFT).begun)
  const before = inProject === undefined ? begun.current?.wanted : undefined
  const [chosen, setChosen] = useState(inProject ?? (before ? (before.project_id ?? '') : own?.[0]))
  const projectId = chosen ?? projects.value?.find((project) => project.is_default)?.id ?? ''
  const chosenProject = projects.value?.find(({ id }) => id === projectId)
  const standard = chosenProject?.agent_provider ?? agents.value?.find((agent) => agent.is_default)?.provider
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
  // While the connection is lost, the page says so once.
  const isLost = useLive().connection === 'lost'
  const failed = isLost ? undefined : (projects.error ?? agents.error)
  const choices = (
    <div class="composer-choices">
      <label>
        <span class="hidden">Agent</span>
        <select
          value={provider ?? ''}
          onChange={({ currentTarget: { value } }) =>
            setProvider(agents.value?.find((agent) => agent.provider === value)?.provider)
          }
        >
          <AgentOptions agents={agents.value ?? []} standard={standard} />
        </select>
      </label>
      <label>
        <span class="hidden">Project</span>
        <select value={projectId} onChange={(event) => setChosen(event.currentTarget.value)}>
          <ProjectOptions
            projects={projects.value ?? []}
            chosen={projectId || null}
            none={own === null ? NO_PROJECT : undefined}
          />
        </select>
      </label>
      <label>
        <span class="hidden">Model</span>
        <input
          list={suggestions}
          value={model}
          maxLength={200}
          placeholder="Default model"
          onInput={(event) => setModel(event.currentTarget.value)}
        />
        <ModelSuggestions
          id={suggestions}
          agent={agents.value?.find((agent) => agent.provider === (provider ?? standard))}
        />
      </label>
    </div>
  )
  return (
    <section class="stack" aria-label="New conversation">
      {failed !== undefined && (
        <ErrorNote
          words={failed}
          onRetry={() => {
            projects.reload()
            agents.reload()
          }}
        />
      )}
      <Composer
        draftId={DRAFT}
        placeholder="What should the agent do?"
        sources={{ projectId }}
        above={choices}
        send={async ({ text, key }, chosen) => {
          const id = await begin()
          const files = await upload(id, chosen)
          const taken = await api.conversations.send(id, text, { idempotencyKey: key, files })
          const local = (words: string): string => withLocalTimes(words, Date.now())
          if ('command' in taken) toast({ title: `/${taken.command}`, what: local(taken.answer) })
          else for (const note of taken.notes) toast({ title: local(note) })
          if (isHere.current) location.hash = hrefOf('conversations', id)
          return undefined
        }}
      />
    </section>
  )
}
