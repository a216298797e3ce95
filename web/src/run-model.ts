// The events of a run as a page shows them: texts joined, tools with their results. Events are added one at a time, and
// only the last blocks are kept.

import type { AgentComplete, Complete, RunEvents } from '../../src/client/aetheel-client.js'
import { isAskedNotice } from '../../src/core/asked-notice.js'
import { withLocalTimes } from '../../src/core/local-time.js'
import { changedFilesOf } from '../../src/core/tool-input.js'
import type { Folds } from './use-fold.js'

export type RunEvent = RunEvents['events'][number]

export interface TextBlock {
  kind: 'text' | 'thinking' | 'stderr'
  key: number
  text: string
}

export interface ToolBlock {
  kind: 'tool'
  key: number
  toolId: string
  tool: string
  input: Record<string, unknown>
  startedAt: number
  /** Absent while the tool runs. */
  result?: { output: string; isError: boolean; endedAt: number }
}

export interface NoteBlock {
  kind: 'notice' | 'error'
  key: number
  text: string
}

export type Block = TextBlock | ToolBlock | NoteBlock

const MOST_BLOCKS = 200
/** Of one text. The transcript has all of it once the run has ended. */
const MOST_CHARACTERS = 400_000

export class RunModel {
  /** A changed block is a new object. */
  blocks: Block[] = []
  /** How many earlier blocks were dropped. */
  dropped = 0
  /** Kept here because a run moves to another place on the page when it ends. */
  readonly folds: Folds = new Map()
  lastId = 0
  /** How many tool calls have changed files. */
  fileChanges = 0
  model: string | undefined
  /** Of the last attempt that ended. */
  result: AgentComplete | undefined
  /** Set once no more events follow. */
  end: Complete | undefined

  constructor(private readonly mostBlocks: number = MOST_BLOCKS) {}

  /** Contract: ignores an event that is not newer. */
  apply({ id, at, name, data }: RunEvent): void {
    if (id <= this.lastId) return
    this.lastId = id
    switch (name) {
      case 'started':
        this.model = textIn(data, 'model') || this.model
        this.result = undefined
        this.end = undefined
        break
      case 'output':
        this.#append(textIn(data, 'stream') === 'stderr' ? 'stderr' : 'text', id, textIn(data, 'line'))
        break
      case 'thinking':
        this.#append('thinking', id, textIn(data, 'content'))
        break
      case 'tool_use':
        this.#push({
          kind: 'tool',
          key: id,
          toolId: textIn(data, 'tool_id'),
          tool: textIn(data, 'tool'),
          input: (data['input'] ?? {}) as Record<string, unknown>,
          startedAt: Date.parse(at),
        })
        break
      case 'tool_result':
        this.#settle(data, Date.parse(at))
        break
      case 'notice':
        // Technical notices are for developers. A question has its own card, with buttons.
        if (data['is_technical'] !== true && !isAskedNotice(textIn(data, 'message')))
          this.#push({ kind: 'notice', key: id, text: withLocalTimes(textIn(data, 'message'), Date.parse(at)) })
        break
      case 'error':
        // The person who stopped it knows.
        if (textIn(data, 'reason') !== 'cancelled') this.#push({ kind: 'error', key: id, text: textIn(data, 'error') })
        break
      case 'agent_complete':
        this.result = data as unknown as AgentComplete
        break
      case 'complete':
        this.end = data as unknown as Complete
        break
    }
  }

  #append(kind: TextBlock['kind'], key: number, text: string): void {
    const last = this.blocks.at(-1)
    if (last?.kind === kind) {
      this.blocks[this.blocks.length - 1] = { ...last, text: (last.text + text).slice(-MOST_CHARACTERS) }
    } else {
      this.#push({ kind, key, text })
    }
  }

  #settle(data: Record<string, unknown>, endedAt: number): void {
    const toolId = textIn(data, 'tool_id')
    const index = this.blocks.findLastIndex((block) => block.kind === 'tool' && block.toolId === toolId)
    const block = this.blocks[index]
    // Its block may have been dropped.
    if (block?.kind !== 'tool') return
    if (changedFilesOf(block.tool, block.input).length > 0) this.fileChanges += 1
    const result = { output: textIn(data, 'output'), isError: data['is_error'] === true, endedAt }
    this.blocks[index] = { ...block, result }
  }

  #push(block: Block): void {
    this.blocks.push(block)
    if (this.blocks.length <= this.mostBlocks) return
    this.blocks.shift()
    this.dropped += 1
  }
}

function textIn(data: Record<string, unknown>, name: string): string {
  const value = data[name]
  return typeof value === 'string' ? value : ''
}
