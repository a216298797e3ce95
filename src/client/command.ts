import type { CancelledCommand, CommandDetails, SubmittedCommand } from '../service/api/commands.js'
import type { CommandEvent } from '../service/api/events.js'
import { AetheelApiError } from './api-error.js'
import { commandEvents, type EventsOptions } from './command-events.js'
import type { Connection } from './connection.js'

/** A command at the gateway, running or not. */
export class Command {
  constructor(
    private readonly connection: Connection,
    readonly projectId: string,
    readonly id: string,
  ) {}

  /** Its current state. */
  get(): Promise<CommandDetails> {
    return this.connection.json('GET', this.#path())
  }

  /** Its events as they happen, from the first or after a given one. Reconnects when the connection breaks. */
  events(options?: EventsOptions): AsyncGenerator<CommandEvent, void> {
    return commandEvents(this.connection, `${this.#path()}/events`, options)
  }

  /** Waits for its end. A failed command does not throw: check `state` and `error`. */
  async finished(options?: Pick<EventsOptions, 'signal'>): Promise<CommandDetails> {
    for await (const { name } of this.events(options)) {
      if (name === 'complete') return this.get()
    }
    throw new AetheelApiError(
      'unexpected_answer',
      204,
      `The stream of command ${this.id} has no "complete". Check its state.`,
    )
  }

  /** Idempotent. */
  cancel(): Promise<CancelledCommand> {
    return this.connection.json('POST', `${this.#path()}/cancel`)
  }

  #path(): string {
    return `/projects/${encodeURIComponent(this.projectId)}/commands/${encodeURIComponent(this.id)}`
  }
}

/** A command that was just submitted. */
export class GivenCommand extends Command {
  constructor(
    connection: Connection,
    projectId: string,
    /** The gateway's response: which agent, which session, where the events are. */
    readonly submitted: SubmittedCommand,
  ) {
    super(connection, projectId, submitted.command_id)
  }
}
