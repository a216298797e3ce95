// What a person sees while an agent works: one message, edited as it goes, gone when the answer is there.

import { abortable, wait } from '../../core/async.js'
import { type APIMessage, MessageFlags } from 'discord.js'
import type { AgentEvent } from '../../backends/types.js'
import { messageOf } from '../../errors.js'
import type { Log } from '../../log.js'
import { oneLine } from '../../core/one-line.js'
import { codeOf, type DiscordApi } from './api.js'
import { button } from './buttons.js'
import type { Destinations } from './destinations.js'
import { nonceOf } from './outgoing.js'
import { isAfter, snowflakeAt } from './snowflake.js'
import { tailOf } from './tail.js'

export type Posted = Pick<APIMessage, 'id' | 'channel_id'>

interface LiveOptions {
  api: Pick<DiscordApi, 'edit' | 'remove' | 'type'>
  destinations: Destinations
  address: string
  /** The message that is being answered. */
  messageId: string
  /** The live message that a gateway which has ended has left. */
  leftover(): Promise<Posted | undefined>
  log: Log
  now: () => number
}

/** An answer that comes sooner needs no live message. */
const FIRST_AFTER_MS = 1_000
/** Discord allows five edits in five seconds. */
const EDIT_EVERY_MS = 1_500
/** Discord lets messages older than an hour be edited only now and then. */
const FRESH_MS = 50 * 60_000
/** Discord shows it for ten seconds. */
const TYPING_EVERY_MS = 8_000
/** With the status line and a fence to open and to close, within the 2,000 of a message. */
const TEXT_CHARACTERS = 1_500

export class LiveMessage {
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

  constructor(private readonly options: LiveOptions) {}

  show(runId: string, event: AgentEvent): void {
    // Another attempt begins again.
    if (runId !== this.#runId) this.#text = ''
    this.#runId = runId
    if (event.type === 'complete') {
      // The answer may be sent by another gateway, which sees only what is shown by then.
      if (!event.result.failure) return this.stop()
      this.#stopTyping()
      // One that is not tried again is told in the answer, which takes the place of this.
      this.#status = `⚠️ ${plain(event.result.failure.message)} · it is tried again`
    } else {
      this.#startTyping()
      if (event.type === 'output') this.#text += event.content
      this.#status = statusOf(event) ?? this.#status
    }
    this.#pump ??= this.#keepShowing()
  }

  /** Whether one may have been posted of which we did not hear. */
  get isUnsure(): boolean {
    return this.#isUnsure
  }

  /** Shows nothing more. */
  stop(): void {
    this.#stopTyping()
    this.#stopped.abort()
  }

  /** Takes it away: the answer is there. */
  async remove(): Promise<void> {
    this.stop()
    await this.#pump
    if (this.#posted) await removeMessage(this.options.api, this.#posted)
    this.#posted = undefined
  }

  /** Leaves it as the last word, with what there is of the text. */
  async end(status: string): Promise<void> {
    await this.#leave(status, { components: [] })
  }

  /** Leaves it to the next gateway, which finds it by its button. */
  async pause(status: string): Promise<void> {
    await this.#leave(status, {})
  }

  async #leave(status: string, more: { components?: [] }): Promise<void> {
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
        if (this.#content() !== this.#shown) await this.#write().catch((error: unknown) => this.#unlessOver(error))
        await wait(EDIT_EVERY_MS, { signal })
      }
    } catch (error) {
      // The answer comes in any case.
      if (!signal.aborted) log.warn('discord.live-failed', { messageId, error: messageOf(error) })
    }
  }

  /** What Discord refuses is over; a connection that broke is not. */
  #unlessOver(error: unknown): void {
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
    // Where the first attempt had come, its text is shown.
    this.#shown = isRepeated ? '' : content
  }

  async #edit({ id, channel_id }: Posted): Promise<void> {
    const { signal } = this.#stopped
    const content = this.#content()
    // One that waits for a rate limit must not keep the answer waiting.
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

/** Contract: what Discord does not let us remove, because it is gone or closed, is as good as removed. */
export async function removeMessage(api: Pick<DiscordApi, 'remove'>, { channel_id, id }: Posted): Promise<void> {
  await api.remove(channel_id, id).catch((error: unknown) => {
    if (codeOf(error) === undefined) throw error
  })
}

const STATUS_CHARACTERS = 120

function statusOf(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'tool_use':
      return `🔧 ${plain([event.toolName, subjectOf(event.toolInput)].filter((word) => word !== '').join(': '))}`
    case 'tool_result':
      return event.isError ? `🔧 ${plain(event.toolName)}: failed` : undefined
    case 'thinking':
      return '💭 thinking'
    case 'output':
      return '✍️ writing'
    default:
      return undefined
  }
}

/** What a tool is used on: the first text of its input, such as a command or a path. */
function subjectOf(input: Record<string, unknown>): string {
  return Object.values(input).find((value): value is string => typeof value === 'string' && value !== '') ?? ''
}

/** As plain words: what an agent does must not change how the line looks. */
function plain(text: string): string {
  return oneLine(text, STATUS_CHARACTERS).replaceAll(/[\\`*_~|<>[\]#]/g, String.raw`\$&`)
}
