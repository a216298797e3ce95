// Tickets for a browser's EventSource, which cannot send a token. Each is valid once, for one path and for half a
// minute, so one found in a log or a history opens nothing.

import { randomBytes } from 'node:crypto'
import { GatewayError } from '../errors.js'
import { ticketRequestSchema, ticketSchema } from './api/access.js'
import { hashOf, presentedHash } from './auth.js'
import type { App } from './dependencies.js'
import { routesOf } from './route.js'
import { toWire } from './wire.js'

const TICKET_MS = 30_000
const MAX_TICKETS = 10_000

interface Ticket {
  /** The hash of its token, whose validity is checked when the ticket is used. */
  tokenHash: string
  path: string
  expiresAt: number
}

export class Tickets {
  readonly #open = new Map<string, Ticket>()

  constructor(private readonly now: () => number) {}

  issue(tokenHash: string, path: string): { ticket: string; expiresAt: number } {
    this.#removeExpired()
    if (this.#open.size >= MAX_TICKETS) {
      throw new GatewayError('overloaded', 'There are too many unused tickets. Try again in half a minute.')
    }
    const ticket = randomBytes(32).toString('base64url')
    const expiresAt = this.now() + TICKET_MS
    this.#open.set(hashOf(ticket), { tokenHash, path, expiresAt })
    return { ticket, expiresAt }
  }

  /** Consumes a ticket, valid or not: there is no second try. Returns the hash of its token. */
  redeem(ticket: string, path: string): string | undefined {
    const key = hashOf(ticket)
    const found = this.#open.get(key)
    this.#open.delete(key)
    return found && found.path === path && found.expiresAt > this.now() ? found.tokenHash : undefined
  }

  /** The token hash of an open ticket. */
  peek(ticket: string): string | undefined {
    return this.#open.get(hashOf(ticket))?.tokenHash
  }

  /** The map is in order of expiry. */
  #removeExpired(): void {
    for (const [key, { expiresAt }] of this.#open) {
      if (expiresAt > this.now()) return
      this.#open.delete(key)
    }
  }
}

/** Contract: called before the event streams are registered. */
export function registerTicketRoute(app: App, tickets: Tickets): void {
  const route = routesOf(app, 'streams')
  const streams: RegExp[] = []
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.isStream) streams.push(new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}$`))
  })
  route(
    'POST /tickets',
    { scope: 'read', allowsProjectTokens: true },
    'Create a ticket that opens one event stream, once, within 30 seconds',
    { body: ticketRequestSchema, response: { 201: ticketSchema } },
    async (request, reply) => {
      const { path } = request.body
      const hash = presentedHash(request)
      if (!streams.some((stream) => stream.test(path))) {
        const message = `${path} is not an event stream. Use /activity or the stream_url of a command.`
        throw new GatewayError('request_invalid', message)
      }
      if (hash === undefined)
        throw new GatewayError('unauthorized', 'A ticket needs a token. Send one as "Authorization: Bearer".')
      const issued = tickets.issue(hash, path)
      return reply.code(201).send(toWire(ticketSchema, { ...issued, url: `${path}?ticket=${issued.ticket}` }))
    },
  )
}
