// Converts updates of `gemini --acp` to lines of `gemini -o stream-json`, which the one-shot translation understands.

import type { JsonObject } from '../engine/jsonl.js'
import type { ApprovalRequest } from '../types.js'

/** A session update. */
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

/** The response to a prompt. */
export interface PromptResult {
  stopReason?: string
  _meta?: { quota?: { token_count?: JsonObject } }
}

/** A line that is merely a sign of life: one-shot echoes the prompt like this. */
const SIGN_OF_LIFE = { type: 'message', role: 'user' }

/** Sent as agent text when the approval mode changes. */
const MODE_UPDATE = /^\[MODE_UPDATE\] \w+$/

/** The CLI's call ids end with the call's index within the model's response. */
const OWN_CALL_ID = /_\d{13}_(\d+)$/

export class GeminiLines {
  hasUsedTools = false
  /** Whether there was text since the last tool. */
  #hasAnswered = false
  /** Whether the current model response has been counted as a turn. */
  #isCounted = false
  #announcedTools = new Set<string>()

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
        return [SIGN_OF_LIFE]
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
    if (text === undefined || MODE_UPDATE.test(text)) return [SIGN_OF_LIFE]
    this.#isCounted = false
    if (type === 'message') this.#hasAnswered = true
    return [{ type, role: 'assistant', content: text }]
  }

  #tool({ toolCallId = '', title, kind = 'tool', status, content, locations = [] }: Update): JsonObject[] {
    this.hasUsedTools = true
    this.#hasAnswered = false
    const lines: JsonObject[] = []
    // A tool that needed approval, and one that fails at once, are reported only at their end.
    if (!this.#announcedTools.has(toolCallId)) {
      this.#announcedTools.add(toolCallId)
      const parameters = titleOf(title, locations)
      lines.push({ type: 'tool_use', tool_id: toolCallId, tool_name: toolNameOf(toolCallId) ?? kind, parameters })
    }
    if (status !== 'completed' && status !== 'failed') return lines
    const output = partsOf(content).map(textOf).join('\n')
    lines.push({ type: 'tool_result', tool_id: toolCallId, status: status === 'failed' ? 'error' : 'success', output })
    if (this.#isNewResponse(toolCallId)) lines.push({ type: 'round' })
    this.#isCounted = true
    return lines
  }

  /** All calls of one model response count as one turn. */
  #isNewResponse(toolCallId: string): boolean {
    const index = OWN_CALL_ID.exec(toolCallId)?.[1]
    return index === undefined ? !this.#isCounted : index === '0'
  }
}

/**
 * For a command or a file change, the request has every detail. The title of another tool may be truncated, so two calls
 * with the same title need not be the same.
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
  return { command: title, ...(!where.startsWith(IN_SESSION_DIRECTORY) && { where }) }
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

/** Marks a command that runs in the session's directory. */
const IN_SESSION_DIRECTORY = '[current working directory '

/** A call's id begins with the tool's name. */
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
        message: 'Gemini CLI got stuck in a loop, or reached its maximum number of turns.',
      }
    case 'max_tokens':
      return { message: 'The conversation is too long for the model.' }
    default:
      return { message: `The turn ended without an answer: ${stopReason}.` }
  }
}
