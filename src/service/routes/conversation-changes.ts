// The files that the agent changed in a conversation, as its tools reported them.

import { countLines, countPatchLines, type LineCounts } from '../../core/line-diff.js'
import { changedFilesOf } from '../../core/tool-input.js'
import type { Scrubber } from '../../credentials/scrubber.js'
import { directoryWithin } from '../../kubernetes/types.js'
import type { ToolCall } from '../../store/events.js'
import * as api from '../api/conversations.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { callerOf } from './changes.js'
import { findConversation } from './visibility.js'

const MAX_FILES = 200
const MAX_EDITS = 500
const MAX_TEXT_CHARACTERS = 20_000
/** Limit of all texts together. */
const MAX_CHARACTERS = 1_000_000
/** Nobody reads a larger edit. */
const MAX_CALL_BYTES = 1_000_000

type Change = ReturnType<typeof changedFilesOf>[number]

export function registerConversationChangeRoutes(app: App, { gateway }: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')
  const { store, scrubber } = gateway

  route(
    'GET /conversations/:id/changes',
    { scope: 'read', allowsProjectTokens: true },
    'List the files that the agent changed in a conversation, latest first',
    { params: api.conversationParams, response: { 200: api.changesSchema } },
    async (request) => {
      const { id } = await findConversation(request.params.id, callerOf(request), store)
      return changesIn(store.events.toolCalls(id, MAX_CALL_BYTES), scrubber)
    },
  )
}

async function changesIn(calls: AsyncIterable<ToolCall>, scrubber: Pick<Scrubber, 'scrub'>): Promise<api.Changes> {
  const files = new Map<string, api.ChangedFile>()
  let edits = 0
  let left = MAX_CHARACTERS
  for await (const call of calls) {
    for (const change of changedFilesOf(call.name, call.input)) {
      const path = pathFrom(call.directory, change.path)
      const isNew = !files.has(path)
      if (edits === MAX_EDITS || left <= 0 || (isNew && files.size === MAX_FILES)) {
        return { files: [...files.values()], is_cut: true }
      }
      const file = files.get(path) ?? { path, added: 0, removed: 0, edits: [] }
      files.set(path, file)
      const { added, removed } = countsOf(change)
      const edit = editView(call, change, scrubber)
      file.added += added
      file.removed += removed
      file.edits.push(edit)
      edits += 1
      left -= [edit.patch, edit.old, edit.new].reduce((sum, text) => sum + (text?.length ?? 0), 0)
    }
  }
  return { files: [...files.values()], is_cut: false }
}

function countsOf(change: Change): LineCounts {
  if (change.kind === 'patch') return countPatchLines(change.patch)
  return change.kind === 'edit' ? countLines(change.before, change.after) : { added: 0, removed: 0 }
}

function editView(call: ToolCall, change: Change, scrubber: Pick<Scrubber, 'scrub'>): api.FileEdit {
  let isCut = false
  const cut = (text: string): string => {
    if (text.length <= MAX_TEXT_CHARACTERS) return text
    isCut = true
    return scrubber.scrub(text).slice(0, MAX_TEXT_CHARACTERS)
  }
  const texts =
    change.kind === 'edit'
      ? { old: cut(change.before), new: cut(change.after) }
      : change.kind === 'patch'
        ? { patch: cut(change.patch) }
        : {}
  return toWire(api.fileEditSchema, { ...call, tool: call.name, ...texts, isCut })
}

/** Relative to the agent's directory if the file is inside it. */
function pathFrom(directory: string | undefined, path: string): string {
  const start = directory === undefined ? undefined : `${directoryWithin(directory).replace(/\/$/, '')}/`
  return start !== undefined && path.startsWith(start) ? path.slice(start.length) : path.replace(/^\.\//, '')
}
