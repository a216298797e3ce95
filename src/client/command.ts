import type { CancelledCommand, CommandDetails, SubmittedCommand } from '../service/api/commands.js'
import type { CommandEvent } from '../service/api/events.js'
import { AetheelApiError } from './api-error.js'
import { commandEvents, type EventsOptions } from './command-events.js'
import type { Connection } from './connection.js'

/** A command that the gateway has, running or not. */
export class Command {
  constructor(
    private readonly connection: Connection,
    readonly projectId: string,
    readonly id: string,
  ) {}

  /** What it comes to so far. */
  get(): Promise<CommandDetails> {
    return this.connection.json('GET', this.#path())
  }

  /** Its events from the first one, or after one, as they come. A connection that breaks is made again. */
  events(options?: EventsOptions): AsyncGenerator<CommandEvent, void> {
    return commandEvents(this.connection, `${this.#path()}/events`, options)
  }

  /** Waits for its end. A command that fails is a value, too: look at `state` and `error`. */
  async finished(options?: Pick<EventsOptions, 'signal'>): Promise<CommandDetails> {
    for await (const { name } of this.events(options)) {
      if (name === 'complete') return this.get()
    }
    throw new AetheelApiError('unexpected_answer', 204, `The command ${this.id} has no end that could be followed.`)
  }

  /** Ends it; once more does no harm. */
  cancel(): Promise<CancelledCommand> {
    return this.connection.json('POST', `${this.#path()}/cancel`)
  }

  #path(): string {
    return `/projects/${encodeURIComponent(this.projectId)}/commands/${encodeURIComponent(this.id)}`
  }
}

/** A command that was just given. */
export class GivenCommand extends Command {
  constructor(
    connection: Connection,
    projectId: string,
    /** What the gateway has said to it: who works on it, in which session, where its events are. */
    readonly submitted: SubmittedCommand,
  ) {
    super(connection, projectId, submitted.command_id)
  }
}
