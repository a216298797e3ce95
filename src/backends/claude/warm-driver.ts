// Claude Code as a warm process. Wire types captured from `claude -p --input-format stream-json`, CLI 2.1.197; see
// test/fixtures/claude/live-*.jsonl and docs/backends/claude.md.
//
// Traps:
// - It exits on a line that it cannot parse: send only JSON.
// - Cost and tokens per model count from the start of the process; those of a turn are differences.
// - It may speak unprompted, as when it is woken up: that is not the answer to the next message.
// - Approval of a tool must include the tool's input, or the tool fails.

import { deferred } from '../../core/async.js'
import { parseTool } from '../engine/allowed-tool.js'
import type { JsonObject } from '../engine/jsonl.js'
import type { Translation } from '../engine/translation.js'
import type { Turn } from '../engine/turn.js'
import type { Send, WarmConnection, WarmDriver, WarmTurn } from '../engine/warm/types.js'
import type { ApprovalAnswer, Approve } from '../types.js'

type ClaudeMessage =
  | { type: 'control_response'; response: { subtype: 'success' | 'error'; request_id: string; error?: string } }
  | { type: 'control_request'; request_id: string; request: { subtype: 'can_use_tool' } & Permission }
  | { type: 'control_cancel_request'; request_id: string }
  | { type: 'system'; subtype: string }
  | { type: 'result' }

/** A tool call that it wants approved. */
interface Permission {
  tool_name: string
  input: Record<string, unknown>
  /** `rule` if an "ask" rule matched. */
  decision_reason_type?: string
}

/** Totals in a result line. */
interface Totals {
  total_cost_usd?: number
  modelUsage?: Record<string, ModelUsage>
}

type ModelUsage = Record<(typeof COUNTED)[number], number>

const COUNTED = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens'] as const

export function claudeWarmDriver(launch: WarmDriver['launch']): WarmDriver {
  return {
    isShared: false,
    canAsk: true,
    oldestKnown: '2.1.197',
    /** Everything but the message is on the command line. The model could be switched, but that would show in the history. */
    keyOf({ prompt: _prompt, sessionId: _sessionId, sessionUsage: _sessionUsage, compaction: _compaction, ...fixed }) {
      return JSON.stringify(fixed)
    },
    launch,
    connect: (send) => new ClaudeConnection(send),
  }
}

class ClaudeConnection implements WarmConnection {
  readonly ready: Promise<void>
  /** Pending control requests, by id. */
  #answers = new Map<string, (error: string | undefined) => void>()
  #requestCount = 0
  #turn: ClaudeTurn | undefined
  /** Pending approvals, by request id. */
  #approvals = new Map<string, AbortController>()
  /** It is speaking unprompted. */
  #isUnprompted = false
  #totals: Totals = {}

  constructor(private readonly send: Send) {
    this.ready = this.#request('initialize').then((error) => {
      if (error !== undefined) throw new Error(`Claude Code did not become ready: ${error}`)
    })
  }

  async ping(): Promise<void> {
    await this.#request('mcp_status')
  }

  begin(turn: Turn, translation: Translation, approve?: Approve): WarmTurn {
    const ask = approve && denyUnlisted(turn.allowedTools, approve)
    this.#turn = new ClaudeTurn(translation, () => this.#request('interrupt'), ask)
    this.send({ type: 'user', message: { role: 'user', content: turn.prompt } })
    return this.#turn
  }

  receive(message: JsonObject): void {
    const line = message as ClaudeMessage
    switch (line.type) {
      case 'control_response':
        return this.#onResponse(line.response)
      case 'control_request':
        void this.#onRequest(line.request_id, line.request)
        return
      case 'control_cancel_request':
        this.#approvals.get(line.request_id)?.abort()
        return
      case 'result':
        return this.#result(message)
      case 'system':
        if (line.subtype === 'init' && !this.#turn) this.#silence()
        break
      default:
        break
    }
    if (!this.#isUnprompted) this.#turn?.translation.accept(message)
  }

  #result(line: JsonObject): void {
    const ofThisTurn = totalsSince(line, this.#totals)
    this.#totals = line
    if (this.#isUnprompted) {
      this.#isUnprompted = false
      return
    }
    this.#turn?.finish({ ...line, ...ofThisTurn })
    this.#turn = undefined
  }

  /** Always answers, since Claude waits. Contract: never rejects. */
  async #onRequest(id: string, request: { subtype: string } & Permission): Promise<void> {
    const ask = this.#isUnprompted ? undefined : this.#turn?.ask
    if (request.subtype !== 'can_use_tool' || !ask) {
      this.send({ type: 'control_response', response: { subtype: 'error', request_id: id, error: 'Not supported' } })
      return
    }
    const approval = new AbortController()
    this.#approvals.set(id, approval)
    const answer = await ask(request, approval.signal)
    this.#approvals.delete(id)
    if (approval.signal.aborted) return
    const response = answer.isAllowed
      ? { behavior: 'allow', updatedInput: request.input }
      : { behavior: 'deny', message: answer.message }
    this.send({ type: 'control_response', response: { subtype: 'success', request_id: id, response } })
  }

  /** Interrupts unprompted work. */
  #silence(): void {
    this.#isUnprompted = true
    void this.#request('interrupt')
  }

  /** Settles with the error, if any. */
  #request(subtype: 'initialize' | 'interrupt' | 'mcp_status'): Promise<string | undefined> {
    this.#requestCount += 1
    const id = `${subtype}-${this.#requestCount}`
    this.send({ type: 'control_request', request_id: id, request: { subtype } })
    return new Promise((resolve) => this.#answers.set(id, resolve))
  }

  #onResponse({ request_id, subtype, error = 'no reason given' }: AnswerOf<ClaudeMessage>): void {
    this.#answers.get(request_id)?.(subtype === 'error' ? error : undefined)
    this.#answers.delete(request_id)
  }
}

type AnswerOf<Message> = Message extends { type: 'control_response'; response: infer Response } ? Response : never

type Ask = (permission: Permission, signal: AbortSignal) => Promise<ApprovalAnswer>

/**
 * Denies tools that are not on the list without asking. Built-in tools that are not on it are not offered at all; for a
 * tool listed with a rule, the CLI reports whether a rule matched.
 */
function denyUnlisted(allowedTools: string[], approve: Approve): Ask {
  return async ({ tool_name: toolName, input, decision_reason_type: reason }, signal) => {
    const entries = allowedTools.filter((entry) => isAbout(entry, toolName))
    const isMissing = allowedTools.length > 0 && entries.length === 0 && toolName.startsWith('mcp__')
    const isRuledOut = entries.length > 0 && reason !== 'rule' && entries.every((entry) => entry.includes('('))
    if (isMissing || isRuledOut) return { isAllowed: false, message: 'This is not among the allowed tools.' }
    return approve({ toolName, toolInput: input }, signal)
  }
}

/** An MCP server's name stands for all its tools. */
function isAbout(entry: string, toolName: string): boolean {
  const { name } = parseTool(entry)
  return name === toolName || (name.startsWith('mcp__') && toolName.startsWith(`${name}__`))
}

class ClaudeTurn implements WarmTurn {
  readonly #done = deferred()
  readonly done = this.#done.promise
  #interrupted: Promise<unknown> = Promise.resolve()

  constructor(
    readonly translation: Translation,
    private readonly requestInterrupt: () => Promise<unknown>,
    /** Absent if the turn needs no approvals. */
    readonly ask?: Ask,
  ) {}

  interrupt(): void {
    this.#interrupted = this.requestInterrupt()
  }

  /** Waits for a pending interrupt, which must not hit the next turn. */
  finish(result: JsonObject): void {
    this.translation.accept(result)
    void this.#interrupted.then(() => this.#done.resolve())
  }
}

function totalsSince({ total_cost_usd: cost, modelUsage }: Totals, before: Totals): Totals {
  const models = Object.entries(modelUsage ?? {}).map(([model, usage]) => {
    const then = before.modelUsage?.[model]
    const counts = COUNTED.map((name) => [name, usage[name] - (then?.[name] ?? 0)])
    return [model, Object.fromEntries(counts)] as const
  })
  return {
    ...(cost !== undefined && { total_cost_usd: cost - (before.total_cost_usd ?? 0) }),
    modelUsage: Object.fromEntries(models),
  }
}
