import { useEffect, useState } from 'preact/hooks'
import type { SlashCommand } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import type { IconName } from '../parts/icon.js'
import { type Completing, completingAt } from './completion.js'

export interface Completion {
  /** What is inserted, without its sign. */
  word: string
  note: string
  icon: IconName
}

/** Where completions come from: without a conversation no commands, without a project no files. */
export interface CompletionSources {
  conversationId?: string | undefined
  projectId?: string | null | undefined
}

const MOST = 8
/** The pause after the last key, before files are searched. */
const TYPING_MS = 120

/** Completions for the text before the caret, if any. */
export function useCompletions(
  text: string,
  caret: number,
  sources: CompletionSources,
): { completing: Completing | undefined; completions: Completion[] } {
  const completing = completingAt(text, caret)
  const { kind, query } = completing ?? {}
  const [found, setFound] = useState<{ kind: string; completions: Completion[] }>()
  const { conversationId, projectId } = sources
  useEffect(() => {
    if (kind === undefined || query === undefined) return undefined
    let isLeft = false
    const timer = setTimeout(
      () => {
        completionsOf(kind, query, { conversationId, projectId }).then(
          (completions) => {
            if (!isLeft) setFound({ kind, completions })
          },
          // Completions are optional.
          () => undefined,
        )
      },
      kind === 'file' ? TYPING_MS : 0,
    )
    return () => {
      isLeft = true
      clearTimeout(timer)
    }
  }, [kind, query, conversationId, projectId])
  return { completing, completions: found && found.kind === kind ? found.completions : [] }
}

async function completionsOf(
  kind: Completing['kind'],
  query: string,
  { conversationId, projectId }: CompletionSources,
): Promise<Completion[]> {
  if (kind === 'file') {
    if (!projectId) return []
    const { files } = await api.projects.files(projectId, query)
    return files.slice(0, MOST).map((path) => ({ word: path, note: '', icon: path.endsWith('/') ? 'folder' : 'file' }))
  }
  if (conversationId === undefined) return []
  const commands = await commandsOf(conversationId)
  return commands
    .filter(({ name }) => name.startsWith(query.toLowerCase()))
    .slice(0, MOST)
    .map(({ name, description, argument }) => ({
      word: name,
      note: argument ? `${argument.name} · ${description}` : description,
      icon: 'terminal',
    }))
}

/** Loaded once per conversation. */
const known = new Map<string, Promise<SlashCommand[]>>()

function commandsOf(conversationId: string): Promise<SlashCommand[]> {
  const before = known.get(conversationId)
  if (before) return before
  const commands = api.conversations.commands(conversationId)
  known.set(conversationId, commands)
  commands.catch(() => known.delete(conversationId))
  return commands
}
