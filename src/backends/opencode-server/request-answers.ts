// An agent that asks waits until it is answered, and nobody is there to ask: what it may do is allowed at once, and a
// question is rejected. Its sub-agents ask in sessions of their own.

import { isObject, type JsonObject } from '../jsonl.js'
import type { OpenCodeClient, PermissionRule } from './client.js'
import type { ServerEvent } from './event-stream.js'
import { persist } from './persist.js'
import { isDenied } from './tool-rules.js'

export class RequestAnswers {
  readonly #answered = new Set<string>()

  constructor(
    private readonly client: OpenCodeClient,
    private readonly rules: PermissionRule[],
    /** Tells why there may be no answer. */
    private readonly tell: (content: string) => void,
    /** Whether nobody waits for an answer any more. */
    private readonly isVain: () => boolean,
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
  async #permission({ id, permission, patterns }: JsonObject, directory: string): Promise<void> {
    if (typeof id !== 'string') return
    const isClear = typeof permission === 'string' && isTexts(patterns)
    const isRefused = !isClear || isDenied({ permission, patterns }, this.rules)
    const words = isClear ? `${permission} (${patterns.join(', ')})` : 'something that cannot be understood'
    if (isRefused) this.#tell(id, `The agent asked for ${words}, which is not among its allowed tools.`)
    await this.#answer(id, () => this.client.replyToPermission(id, isRefused ? 'reject' : 'once', directory))
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
    await persist(send, this.isVain)
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
