// An agent that asks waits until it is answered. Where the turn is to ask, somebody else is; else what it may do is allowed
// at once. A question is rejected. Its sub-agents ask in sessions of their own.

import { wait } from '../../../core/async.js'
import { isObject, type JsonObject } from '../../engine/jsonl.js'
import type { OpenCodeClient, PermissionRequest, PermissionRule } from './client.js'
import type { ServerEvent } from './event-stream.js'
import { retryUntilAnswered } from './retry-until-answered.js'
import type { ApprovalAnswer, ApprovalRequest, Approve } from '../../types.js'
import { isDenied } from './tool-rules.js'

interface Asking {
  /** What was told of a tool of the turn. */
  toolOf(callId: string): ApprovalRequest | undefined
  /** Absent where the turn does not ask. */
  approve?: Approve
  /** Aborted when the turn is over or stopped. */
  signal: AbortSignal
}

/** What an agent wants to be allowed, of a shape that can be understood. */
type Clear = Pick<PermissionRequest, 'permission' | 'patterns' | 'metadata' | 'tool'>

export class RequestAnswers {
  readonly #answered = new Set<string>()
  /** What was asked of somebody else, by the id of the request. */
  readonly #asked = new Map<string, Promise<ApprovalAnswer>>()

  constructor(
    private readonly client: OpenCodeClient,
    private readonly rules: PermissionRule[],
    /** Tells why there may be no answer. */
    private readonly tell: (content: string) => void,
    /** Whether nobody waits for an answer any more. */
    private readonly isAbandoned: () => boolean,
    private readonly asking: Asking,
  ) {}

  /** Contract: never throws, whatever shape the event has. */
  event({ type, properties }: ServerEvent, directory: string): void {
    if (type === 'permission.asked') void this.#permission(properties, directory)
    if (type === 'question.asked') void this.#question(properties, directory)
  }

  /** Answers what was asked while no events came. Contract: rejects when that could not be found out. */
  async catchUp(directory: string, isOurs: (sessionId: string) => Promise<boolean>): Promise<void> {
    const [permissions, questions] = await Promise.all([
      this.client.permissionRequests(directory),
      this.client.questionRequests(directory),
    ])
    for (const asked of permissions) if (await isOurs(asked.sessionID)) void this.#permission({ ...asked }, directory)
    for (const asked of questions) if (await isOurs(asked.sessionID)) void this.#question({ ...asked }, directory)
  }

  /** What cannot be understood is not allowed, but it is answered: the agent waits. */
  async #permission({ id, permission, patterns, metadata, tool }: JsonObject, directory: string): Promise<void> {
    if (typeof id !== 'string') return
    const isClear = typeof permission === 'string' && isTexts(patterns)
    const isRefused = !isClear || isDenied({ permission, patterns }, this.rules)
    const words = isClear ? `${permission} (${patterns.join(', ')})` : 'something that cannot be understood'
    if (isRefused) this.#tell(id, `The agent asked for ${words}, which is not among its allowed tools.`)
    const { approve } = this.asking
    if (isRefused || !approve) {
      await this.#answer(id, () => this.client.replyToPermission(id, isRefused ? 'reject' : 'once', directory))
      return
    }
    const asked = { permission, patterns, ...(isObject(metadata) && { metadata }), ...(isCall(tool) && { tool }) }
    await this.#answer(id, await this.#ask(id, asked, approve, directory))
  }

  /** Settles with how to answer. It is asked once, though it may be told twice. */
  async #ask(id: string, asked: Clear, approve: Approve, directory: string): Promise<() => Promise<void>> {
    const { signal } = this.asking
    // The command itself is asked about as well.
    const isAsideOfCommand = asked.permission === 'external_directory' && asked.metadata?.['command'] !== undefined
    const asking = isAsideOfCommand ? ALLOWED : (this.#asked.get(id) ?? this.#approval(asked, approve))
    this.#asked.set(id, asking)
    const answer = await asking
    // Without a message nothing follows.
    if (signal.aborted) return () => this.client.replyToPermission(id, 'reject', directory)
    return answer.isAllowed
      ? () => this.client.replyToPermission(id, 'once', directory)
      : () => this.client.replyToPermission(id, 'reject', directory, answer.message)
  }

  async #approval({ permission, patterns, metadata = {}, tool }: Clear, approve: Approve): Promise<ApprovalAnswer> {
    const isPlace = permission === 'external_directory'
    const known = isPlace ? undefined : await this.#toolOf(tool)
    // Without the whole input, two calls that look the same need not be.
    const call = isPlace || !tool ? {} : { call: tool.callID }
    const told = { ...(Object.keys(metadata).length > 0 ? metadata : { patterns }), ...call }
    const { toolName, toolInput }: ApprovalRequest = known ?? { toolName: permission, toolInput: told }
    const path = metadata['filepath'] ?? toolInput['filePath']
    const request = { toolName, toolInput: { ...toolInput, ...(typeof path === 'string' && { file_path: path }) } }
    return approve(request, this.asking.signal)
  }

  /** The event that tells of the tool comes a moment later. */
  async #toolOf(tool: Clear['tool']): Promise<ApprovalRequest | undefined> {
    if (!tool) return undefined
    for (let looks = 0; looks < MOST_LOOKS && !this.isAbandoned(); looks += 1) {
      const known = this.asking.toolOf(tool.callID)
      if (known) return known
      await wait(LOOK_MS)
    }
    return undefined
  }

  async #question({ id, questions }: JsonObject, directory: string): Promise<void> {
    if (typeof id !== 'string') return
    const texts = (Array.isArray(questions) ? questions : []).map((one) =>
      isObject(one) ? one['question'] : undefined,
    )
    const words = texts.filter((text) => typeof text === 'string').join(' ')
    this.#tell(id, `The agent asked a question, which nobody can answer here: ${words}`)
    await this.#answer(id, () => this.client.rejectQuestion(id, directory))
  }

  #tell(id: string, content: string): void {
    if (!this.#answered.has(id)) this.tell(content)
  }

  /** Contract: never rejects. */
  async #answer(id: string, send: () => Promise<void>): Promise<void> {
    if (this.#answered.has(id)) return
    this.#answered.add(id)
    await retryUntilAnswered(send, this.isAbandoned)
  }
}

const MOST_LOOKS = 100
const LOOK_MS = 20

const ALLOWED = Promise.resolve<ApprovalAnswer>({ isAllowed: true })

function isCall(value: unknown): value is { callID: string } {
  return isObject(value) && typeof value['callID'] === 'string'
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
