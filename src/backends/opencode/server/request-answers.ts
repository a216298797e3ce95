// Answers the agent's requests, for which it waits. If the turn needs approvals, a permission request is passed on;
// otherwise it is granted at once unless the rules deny it. Questions are rejected. Subagents ask in their own sessions.

import { wait } from '../../../core/async.js'
import { isObject, type JsonObject } from '../../engine/jsonl.js'
import { type OpenCodeClient, type PermissionRequest, type PermissionRule, retryUntilAnswered } from './client.js'
import type { ServerEvent } from './event-stream.js'
import type { ApprovalAnswer, ApprovalRequest, Approve } from '../../types.js'
import { isDenied } from './tool-rules.js'

interface ApprovalSource {
  /** Looks up a tool call of the turn. */
  toolOf(callId: string): ApprovalRequest | undefined
  /** Undefined if the turn needs no approvals. */
  approve: Approve | undefined
  /** Aborted when the turn is over or stopped. */
  signal: AbortSignal
}

/** A permission request of a known shape. */
type KnownRequest = Pick<PermissionRequest, 'permission' | 'patterns' | 'metadata' | 'tool'>

export class RequestAnswers {
  readonly #answered = new Set<string>()
  /** Approvals asked for, by request id. */
  readonly #asked = new Map<string, Promise<ApprovalAnswer>>()

  constructor(
    private readonly client: OpenCodeClient,
    private readonly rules: PermissionRule[],
    /** Reports why the turn may end without an answer. */
    private readonly report: (content: string) => void,
    /** Whether answers are no longer needed. */
    private readonly isAbandoned: () => boolean,
    private readonly asking: ApprovalSource,
  ) {}

  /** Contract: never throws, whatever shape the event has. */
  event({ type, properties }: ServerEvent, directory: string): void {
    if (type === 'permission.asked') void this.#permission(properties, directory)
    if (type === 'question.asked') void this.#question(properties, directory)
  }

  /** Answers requests from a gap in the events. Contract: rejects if they cannot be listed. */
  async catchUp(directory: string, isOurs: (sessionId: string) => Promise<boolean>): Promise<void> {
    const [permissions, questions] = await Promise.all([
      this.client.permissionRequests(directory),
      this.client.questionRequests(directory),
    ])
    for (const asked of permissions) if (await isOurs(asked.sessionID)) void this.#permission({ ...asked }, directory)
    for (const asked of questions) if (await isOurs(asked.sessionID)) void this.#question({ ...asked }, directory)
  }

  /** A request of unknown shape is rejected rather than ignored, since the agent waits. */
  async #permission({ id, permission, patterns, metadata, tool }: JsonObject, directory: string): Promise<void> {
    if (typeof id !== 'string') return
    const isClear = typeof permission === 'string' && isTexts(patterns)
    const isRefused = !isClear || isDenied({ permission, patterns }, this.rules)
    const words = isClear ? `${permission} (${patterns.join(', ')})` : 'an unknown permission'
    if (isRefused) this.#report(id, `The agent asked for ${words}, which is not among its allowed tools.`)
    const { approve } = this.asking
    if (isRefused || !approve) {
      await this.#answer(id, () => this.client.replyToPermission(id, isRefused ? 'reject' : 'once', directory))
      return
    }
    const asked = { permission, patterns, ...(isObject(metadata) && { metadata }), ...(isCall(tool) && { tool }) }
    await this.#answer(id, await this.#ask(id, asked, approve, directory))
  }

  /** Settles with a function that sends the answer. Asks only once, even if the request arrives twice. */
  async #ask(id: string, asked: KnownRequest, approve: Approve, directory: string): Promise<() => Promise<void>> {
    const { signal } = this.asking
    // There is a separate request for the command itself.
    const isAsideOfCommand = asked.permission === 'external_directory' && asked.metadata?.['command'] !== undefined
    const asking = isAsideOfCommand ? ALLOWED : (this.#asked.get(id) ?? this.#approval(asked, approve))
    this.#asked.set(id, asking)
    const answer = await asking
    // Without a message, the turn ends.
    if (signal.aborted) return () => this.client.replyToPermission(id, 'reject', directory)
    return answer.isAllowed
      ? () => this.client.replyToPermission(id, 'once', directory)
      : () => this.client.replyToPermission(id, 'reject', directory, answer.message)
  }

  async #approval(
    { permission, patterns, metadata = {}, tool }: KnownRequest,
    approve: Approve,
  ): Promise<ApprovalAnswer> {
    const isPlace = permission === 'external_directory'
    const known = isPlace ? undefined : await this.#toolOf(tool)
    // Without the full input, two calls that look the same need not be.
    const call = isPlace || !tool ? {} : { call: tool.callID }
    const told = { ...(Object.keys(metadata).length > 0 ? metadata : { patterns }), ...call }
    const { toolName, toolInput }: ApprovalRequest = known ?? { toolName: permission, toolInput: told }
    const path = metadata['filepath'] ?? toolInput['filePath']
    const request = { toolName, toolInput: { ...toolInput, ...(typeof path === 'string' && { file_path: path }) } }
    return approve(request, this.asking.signal)
  }

  /** The event with the tool call arrives a moment later. */
  async #toolOf(tool: KnownRequest['tool']): Promise<ApprovalRequest | undefined> {
    if (!tool) return undefined
    for (let lookups = 0; lookups < MAX_LOOKUPS && !this.isAbandoned(); lookups += 1) {
      const known = this.asking.toolOf(tool.callID)
      if (known) return known
      await wait(LOOKUP_MS)
    }
    return undefined
  }

  async #question({ id, questions }: JsonObject, directory: string): Promise<void> {
    if (typeof id !== 'string') return
    const texts = (Array.isArray(questions) ? questions : []).map((one) =>
      isObject(one) ? one['question'] : undefined,
    )
    const words = texts.filter((text) => typeof text === 'string').join(' ')
    this.#report(id, `The agent asked a question that nobody can answer here: ${words}`)
    await this.#answer(id, () => this.client.rejectQuestion(id, directory))
  }

  #report(id: string, content: string): void {
    if (!this.#answered.has(id)) this.report(content)
  }

  /** Contract: never rejects. */
  async #answer(id: string, send: () => Promise<void>): Promise<void> {
    if (this.#answered.has(id)) return
    this.#answered.add(id)
    await retryUntilAnswered(send, this.isAbandoned)
  }
}

const MAX_LOOKUPS = 100
const LOOKUP_MS = 20

const ALLOWED = Promise.resolve<ApprovalAnswer>({ isAllowed: true })

function isCall(value: unknown): value is { callID: string } {
  return isObject(value) && typeof value['callID'] === 'string'
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
