// What `gemini --acp` tells of a turn, in the words of `gemini -o stream-json`, which the translation of one-shot knows.

import type { JsonObject } from '../engine/jsonl.js'
import type { ApprovalRequest } from '../types.js'

/** What is told of a session. */
export interface Update {
  sessionUpdate: string
  content?: Content | ToolContent[]
  toolCallId?: string
  title?: string
  kind?: string
  status?: string
  locations?: Array<{ path: string }>
}

interface Content {
  type: string
  text?: string
}

type ToolContent =
  | { type: 'content'; content: Content }
  | { type: 'diff'; path: string; oldText?: string; newText?: string }

/** What a prompt came to. */
export interface PromptResult {
  stopReason?: string
  _meta?: { quota?: { token_count?: JsonObject } }
}

/** A sign of life: one-shot tells a prompt again, too. */
const ALIVE = { type: 'message', role: 'user' }

/** Told as a text of the agent when the approval mode is changed. */
const MODE_UPDATE = /^\[MODE_UPDATE\] \w+$/

/** The id that the CLI gives a call tells its place in the answer of the model. */
const OWN_CALL_ID = /_\d{13}_(\d+)$/

export class GeminiLines {
  hasUsedTools = false
  /** Since the last tool. */
  #hasAnswered = false
  /** Whether a call is of an answer that was counted. */
  #isCounted = false
  #toldTools = new Set<string>()

  of(update: Update): JsonObject[] {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#text('message', update)
      case 'agent_thought_chunk':
        return this.#text('thought', update)
      case 'tool_call':
      case 'tool_call_update':
        return this.#tool(update)
      default:
        return [ALIVE]
    }
  }

  end({ stopReason = '', _meta }: PromptResult): JsonObject {
    const stats = _meta?.quota?.token_count
    const isAnswered = stopReason === 'end_turn' && this.#hasAnswered
    return {
      type: 'result',
      ...(isAnswered ? { status: 'success' } : { status: 'error', error: errorOf(stopReason) }),
      ...(stats && { stats }),
    }
  }

  #text(type: 'message' | 'thought', { content }: Update): JsonObject[] {
    const text = content && 'text' in content ? content.text : undefined
    if (text === undefined || MODE_UPDATE.test(text)) return [ALIVE]
    this.#isCounted = false
    if (type === 'message') this.#hasAnswered = true
    return [{ type, role: 'assistant', content: text }]
  }

  #tool({ toolCallId = '', title, kind = 'tool', status, content, locations = [] }: Update): JsonObject[] {
    this.hasUsedTools = true
    this.#hasAnswered = false
    const lines: JsonObject[] = []
    // A tool that was asked for, and one that fails at once, are told by their end alone.
    if (!this.#toldTools.has(toolCallId)) {
      this.#toldTools.add(toolCallId)
      const parameters = titleOf(title, locations)
      lines.push({ type: 'tool_use', tool_id: toolCallId, tool_name: toolNameOf(toolCallId) ?? kind, parameters })
    }
    if (status !== 'completed' && status !== 'failed') return lines
    const output = partsOf(content).map(textOf).join('\n')
    lines.push({ type: 'tool_result', tool_id: toolCallId, status: status === 'failed' ? 'error' : 'success', output })
    if (this.#isOfNewAnswer(toolCallId)) lines.push({ type: 'round' })
    this.#isCounted = true
    return lines
  }

  /** Calls of one answer of the model are one turn of it. */
  #isOfNewAnswer(toolCallId: string): boolean {
    const place = OWN_CALL_ID.exec(toolCallId)?.[1]
    return place === undefined ? !this.#isCounted : place === '0'
  }
}

/**
 * What it asks before it uses a tool. Of a command and of a change the request has all; the title of another tool may be
 * cut, so that two calls with one title need not be the same.
 */
export function approvalRequestOf(toolCall: Update): ApprovalRequest {
  const { toolCallId = '', kind = 'tool', title, locations } = toolCall
  const toolName = toolNameOf(toolCallId) ?? kind
  return {
    toolName,
    toolInput: commandOf(toolCall) ?? changeOf(toolCall) ?? { ...titleOf(title, locations), call: toolCallId },
  }
}

function commandOf({ kind, title, content }: Update): JsonObject | undefined {
  if (kind !== 'execute') return undefined
  const where = partsOf(content).map(textOf).join('\n')
  return { command: title, ...(!where.startsWith(USUAL_PLACE) && { where }) }
}

function changeOf({ title, content }: Update): JsonObject | undefined {
  const [change, ...others] = partsOf(content).filter((part) => part.type === 'diff')
  if (!change || others.length > 0) return undefined
  return { title, file_path: change.path, old_string: change.oldText, new_string: change.newText }
}

function titleOf(title: string | undefined, locations: Update['locations'] = []): JsonObject {
  const paths = locations.map(({ path }) => path)
  return { ...(title !== undefined && { title }), ...(paths.length > 0 && { paths }) }
}

function partsOf(content: Update['content']): ToolContent[] {
  return Array.isArray(content) ? content : []
}

/** How it says that a command runs in the directory of the session. */
const USUAL_PLACE = '[current working directory '

/** The name stands before the id of the call. */
function toolNameOf(toolCallId: string): string | undefined {
  return /^(.+?)__/s.exec(toolCallId)?.[1]
}

function textOf(part: ToolContent): string {
  return part.type === 'diff' ? part.path : (part.content.text ?? '')
}

function errorOf(stopReason: string): JsonObject {
  switch (stopReason) {
    case 'end_turn':
      return { message: 'The model gave no answer.' }
    case 'max_turn_requests':
      return {
        type: 'FatalTurnLimitedError',
        message: 'Gemini went round in circles, or reached its maximum of turns.',
      }
    case 'max_tokens':
      return { message: 'The conversation is too long for the model.' }
    default:
      return { message: `The turn ended without an answer: ${stopReason}.` }
  }
}
