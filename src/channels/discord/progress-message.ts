// What a person sees while an agent works: one message, edited as it works and removed when the answer arrives.

import { abortable, wait } from '../../core/async.js'
import { type APIMessage, MessageFlags } from 'discord.js'
import type { AgentEvent } from '../../backends/types.js'
import type { NextAttempt } from '../types.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { codeOf, type DiscordApi, isAfter, snowflakeAt } from './api.js'
import { button } from './buttons.js'
import type { Destinations } from './destinations.js'
import { nonceOf } from './outgoing.js'
import { plainLine } from './plain-line.js'
import { tailOf } from './tail.js'

export type Posted = Pick<APIMessage, 'id' | 'channel_id'>

interface ProgressOptions {
  api: Pick<DiscordApi, 'edit' | 'remove' | 'type'>
  destinations: Destinations
  address: string
  /** The message that is being answered. */
  messageId: string
  /** The progress message left behind by a gateway that has ended. */
  leftover(): Promise<Posted | undefined>
  log: Log
  now: () => number
}

/** A faster answer needs no progress message. */
const FIRST_AFTER_MS = 1_000
/** Discord allows five edits in five seconds. */
const EDIT_EVERY_MS = 1_500
/** Discord rations edits of messages older than an hour. */
const FRESH_MS = 50 * 60_000
/** Discord shows the typing indicator for ten seconds. */
const TYPING_EVERY_MS = 8_000
/** Leaves room for the status line and for opening and closing a fence within Discord's 2,000 characters. */
const TEXT_CHARACTERS = 1_500

export class ProgressMessage {
  readonly #stopped = new AbortController()
  #runId: string | undefined
  #text = ''
  #status = ''
  #shown = ''
  #posted: Posted | undefined
  #postCount = 0
  #isUnsure = true
  #typing: NodeJS.Timeout | undefined
  #pump: Promise<void> | undefined

  constructor(private readonly options: ProgressOptions) {}

  show(runId: string, event: AgentEvent): void {
    // A new attempt starts over.
    if (runId !== this.#runId) this.#text = ''
    this.#runId = runId
    if (event.type === 'complete') {
      // The answer may be sent by another gateway, which sees only what has been posted by then.
      const { failure } = event.result
      if (!failure || failure.reason === 'max_turns') return this.stop()
      this.#stopTyping()
      // If there is no retry, the answer reports the failure and replaces this message.
      this.#status = `⚠️ ${plainLine(failure.message)} · retrying`
    } else {
      this.#startTyping()
      if (event.type === 'output') this.#text += event.content
      this.#status = statusOf(event) ?? this.#status
    }
    this.#pump ??= this.#keepShowing()
  }

  /** The turn has failed, and there is another one. */
  retry({ problem, attempt, attempts, startsAt }: Omit<NextAttempt, 'address' | 'messageId'>): void {
    const starts = `attempt ${attempt} of ${attempts} starts <t:${Math.ceil(startsAt / 1000)}:R>`
    this.#status = `⚠️ ${plainLine(problem)} · ${starts}`
    this.#pump ??= this.#keepShowing()
  }

  /** Whether a post may have succeeded without our hearing of it. */
  get isUnsure(): boolean {
    return this.#isUnsure
  }

  /** Stops updating. */
  stop(): void {
    this.#stopTyping()
    this.#stopped.abort()
  }

  /** Removes it: the answer has arrived. */
  async remove(): Promise<void> {
    this.stop()
    await this.#pump
    if (this.#posted) await removeMessage(this.options.api, this.#posted)
    this.#posted = undefined
  }

  /** Leaves it as the final word, with the text so far. */
  async end(status: string): Promise<void> {
    await this.#leaveWith(status, { components: [] })
  }

  /** Leaves it for the next gateway, which finds it by its button. */
  async pause(status: string): Promise<void> {
    await this.#leaveWith(status, {})
  }

  async #leaveWith(status: string, more: { components?: [] }): Promise<void> {
    this.stop()
    if (this.#pump) await this.#pump
    else this.#posted = await this.options.leftover()
    this.#status = status
    if (!this.#posted) return
    const { id, channel_id } = this.#posted
    await this.options.api.edit(channel_id, id, { content: this.#content(), ...more })
  }

  async #keepShowing(): Promise<void> {
    const { log, messageId, leftover } = this.options
    const { signal } = this.#stopped
    try {
      this.#posted = await leftover()
      this.#isUnsure = false
      if (!this.#posted) await wait(FIRST_AFTER_MS, { signal })
      while (!signal.aborted) {
        if (this.#content() !== this.#shown) await this.#write().catch((error: unknown) => this.#rethrowIfFinal(error))
        await wait(EDIT_EVERY_MS, { signal })
      }
    } catch (error) {
      // The answer arrives regardless.
      if (!signal.aborted) log.warn('discord.live-failed', { messageId, error: messageOf(error) })
    }
  }

  /** A refusal by Discord is final; a broken connection is not. */
  #rethrowIfFinal(error: unknown): void {
    if (codeOf(error) !== undefined || this.#stopped.signal.aborted) throw error
    const { log, messageId } = this.options
    log.debug('discord.live-not-shown', { messageId, error: messageOf(error) })
  }

  async #write(): Promise<void> {
    const posted = this.#posted
    const oldest = snowflakeAt(this.options.now() - FRESH_MS)
    if (posted && isAfter(posted.id, oldest)) return this.#edit(posted)
    await this.#post()
    if (posted) await removeMessage(this.options.api, posted)
  }

  async #post(): Promise<void> {
    const { destinations, address, messageId } = this.options
    const content = this.#content()
    const isRepeated = this.#isUnsure
    this.#isUnsure = true
    this.#posted = await destinations.post(address, {
      message: {
        content,
        flags: MessageFlags.SuppressNotifications | MessageFlags.SuppressEmbeds,
        components: [button('stop', messageId)],
        nonce: nonceOf(`${messageId}:live:${this.#runId}:${this.#postCount}`),
        enforce_nonce: true,
      },
    })
    this.#isUnsure = false
    this.#postCount += 1
    // If the first attempt got through, its text is what is shown.
    this.#shown = isRepeated ? '' : content
  }

  async #edit({ id, channel_id }: Posted): Promise<void> {
    const { signal } = this.#stopped
    const content = this.#content()
    // An edit waiting for a rate limit must not delay the answer.
    await abortable(signal, (own) => this.options.api.edit(channel_id, id, { content }, own))
    this.#shown = content
  }

  #content(): string {
    const status = this.#status === '' ? '' : `-# ${this.#status}`
    return (
      [tailOf(this.#text, TEXT_CHARACTERS), status].filter((part) => part.trim() !== '').join('\n') || '-# ⏳ working'
    )
  }

  #startTyping(): void {
    if (this.#typing || this.#stopped.signal.aborted) return
    const type = async (): Promise<void> => {
      const { api, destinations, address, log } = this.options
      try {
        await api.type(await destinations.channelId(address))
      } catch (error) {
        log.debug('discord.typing-failed', { error: messageOf(error) })
      }
    }
    void type()
    this.#typing = setInterval(() => void type(), TYPING_EVERY_MS)
  }

  #stopTyping(): void {
    clearInterval(this.#typing)
    this.#typing = undefined
  }
}

/**
 * Contract: a message Discord will not let us remove, because it or its channel is gone or closed, counts as removed.
 */
export async function removeMessage(api: Pick<DiscordApi, 'remove'>, { channel_id, id }: Posted): Promise<void> {
  await api.remove(channel_id, id).catch((error: unknown) => {
    if (codeOf(error) === undefined) throw error
  })
}

function statusOf(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'tool_use':
      return `🔧 ${plainLine([event.toolName, subjectOf(event.toolInput)].filter((word) => word !== '').join(': '))}`
    case 'tool_result':
      return event.isError ? `🔧 ${plainLine(event.toolName)}: failed` : undefined
    case 'thinking':
      return '💭 thinking'
    case 'output':
      return '✍️ writing'
    default:
      return undefined
  }
}

/** The subject of a tool call: the first text in its input, such as a command or a path. */
function subjectOf(input: Record<string, unknown>): string {
  return Object.values(input).find((value): value is string => typeof value === 'string' && value !== '') ?? ''
}
