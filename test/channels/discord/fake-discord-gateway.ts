// The gateway socket: HELLO, IDENTIFY, READY, HEARTBEAT, RESUME and the world's events, with Discord's close codes.
// Every session keeps its numbered events, so that a client that resumes gets what it missed.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ApplicationFlags, GatewayCloseCodes, GatewayIntentBits, GatewayOpcodes } from 'discord.js'
import type { WebSocket } from 'ws'
import type { Settings } from './fake-discord-settings.js'
import type { World, WorldEvent } from './fake-discord-world.js'

interface Session {
  id: string
  intents: number
  /** The number of the latest event. */
  sequence: number
  /** The latest events, without gaps; `sequence` is the number of the last one. */
  events: string[]
  /** The number of the last event sent. */
  sentUpTo: number
  socket?: WebSocket | undefined
  closedAt: number
  /** It has received READY and its guilds. */
  isWelcome: boolean
}

interface Payload {
  op: number
  d?: unknown
}

interface Identify {
  token?: string
  intents?: number
  shard?: [number, number]
}

interface Resume {
  token?: string
  session_id?: string
  seq?: number
}

type Moment = 'before-ready' | 'before-guilds'

/** A client that asks for an older one must identify again. */
const KEPT_EVENTS = 10_000
const LARGEST_PAYLOAD = 4_096
const ALL_INTENTS = Object.values(GatewayIntentBits).reduce<number>(
  (all, bit) => (typeof bit === 'number' ? all | bit : all),
  0,
)

/** The privileged intents, and the application flags that enable them. */
const PRIVILEGED = [
  [GatewayIntentBits.GuildMembers, ApplicationFlags.GatewayGuildMembers | ApplicationFlags.GatewayGuildMembersLimited],
  [GatewayIntentBits.GuildPresences, ApplicationFlags.GatewayPresence | ApplicationFlags.GatewayPresenceLimited],
  [
    GatewayIntentBits.MessageContent,
    ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited,
  ],
] as const

export class Gateway {
  identifies = 0
  resumes = 0
  readonly #sessions = new Map<string, Session>()
  /** Every open socket with its session, if any. */
  readonly #sockets = new Map<WebSocket, Session | undefined>()
  readonly #acts: { moment: Moment; act: () => void | Promise<void> }[] = []
  #isPaused = false
  #refusedResumes = 0
  #duplicates = 0

  constructor(
    readonly world: () => World,
    readonly settings: Settings,
    readonly token: string,
    readonly url: () => string,
    readonly onIdentify: () => void,
  ) {}

  /** Whether a client is connected and has been sent everything. */
  get isConnected(): boolean {
    return [...this.#sessions.values()].some(
      ({ socket, isWelcome, sentUpTo, sequence }) =>
        isWelcome && sentUpTo === sequence && socket !== undefined && socket.readyState === socket.OPEN,
    )
  }

  publish({ name, data, intents, concealed }: WorldEvent): void {
    const times = name === 'MESSAGE_CREATE' && this.#duplicates > 0 ? 2 : 1
    if (times === 2) this.#duplicates -= 1
    for (const session of this.#sessions.values()) {
      if (intents !== 0 && (session.intents & intents) === 0) continue
      const canRead = (session.intents & GatewayIntentBits.MessageContent) !== 0
      for (let time = 0; time < times; time += 1) this.#dispatch(session, name, canRead ? data : (concealed ?? data))
    }
  }

  connect(socket: WebSocket, request: IncomingMessage): void {
    this.#sockets.set(socket, undefined)
    const query = new URL(request.url ?? '/', this.url()).searchParams
    socket.on('close', (code) => {
      const session = this.#sockets.get(socket)
      this.#sockets.delete(socket)
      if (session?.socket !== socket) return
      session.socket = undefined
      session.closedAt = Date.now()
      // A client that closes normally cannot resume.
      if (code === GOODBYE || code === GOING_AWAY) this.#sessions.delete(session.id)
    })
    // `close` follows and is what counts.
    socket.on('error', () => {})
    if (query.get('v') !== '10') return socket.close(GatewayCloseCodes.InvalidAPIVersion)
    socket.on('message', (raw: Buffer) => {
      const payload = raw.length > LARGEST_PAYLOAD ? undefined : parse(raw)
      const refusal = payload ? this.#hear(socket, payload) : GatewayCloseCodes.DecodeError
      if (refusal !== undefined) socket.close(refusal)
    })
    send(socket, { op: GatewayOpcodes.Hello, d: { heartbeat_interval: this.settings.heartbeatIntervalMs } })
  }

  /** Returns the close code if the payload is invalid. */
  #hear(socket: WebSocket, { op, d }: Payload): GatewayCloseCodes | undefined {
    const session = this.#sockets.get(socket)
    switch (op as GatewayOpcodes) {
      case GatewayOpcodes.Heartbeat: {
        if (this.settings.acknowledgesHeartbeats) send(socket, { op: GatewayOpcodes.HeartbeatAck })
        return undefined
      }
      case GatewayOpcodes.Identify: {
        return session ? GatewayCloseCodes.AlreadyAuthenticated : this.#identify(socket, d ?? {})
      }
      case GatewayOpcodes.Resume: {
        return session ? GatewayCloseCodes.AlreadyAuthenticated : this.#resume(socket, d ?? {})
      }
      case GatewayOpcodes.PresenceUpdate:
      case GatewayOpcodes.VoiceStateUpdate:
      case GatewayOpcodes.RequestGuildMembers: {
        return session ? undefined : GatewayCloseCodes.NotAuthenticated
      }
      default: {
        return GatewayCloseCodes.UnknownOpcode
      }
    }
  }

  /** Ends every connection; without a code, as a broken line would. The sessions can be resumed. */
  dropSockets(code?: number): void {
    for (const socket of this.#sockets.keys()) {
      if (code === undefined) socket.terminate()
      else socket.close(code)
    }
  }

  /** Asks every client to reconnect. */
  requestReconnect(): void {
    for (const socket of this.#sockets.keys()) send(socket, { op: GatewayOpcodes.Reconnect, d: null })
  }

  invalidateSessions(isResumable: boolean): void {
    for (const [socket, session] of this.#sockets) {
      if (!session) continue
      // The client identifies or resumes on this socket or another.
      this.#sockets.set(socket, undefined)
      session.socket = undefined
      session.closedAt = Date.now()
      if (!isResumable) this.#sessions.delete(session.id)
      send(socket, { op: GatewayOpcodes.InvalidSession, d: isResumable })
    }
  }

  refuseResumes(times: number): void {
    this.#refusedResumes += times
  }

  duplicateMessages(times: number): void {
    this.#duplicates += times
  }

  at(moment: Moment, act: () => void | Promise<void>): void {
    this.#acts.push({ moment, act })
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    for (const session of this.#sessions.values()) this.#flush(session)
  }

  #identify(socket: WebSocket, identify: Identify): GatewayCloseCodes | undefined {
    const intents = identify.intents ?? -1
    const refusal = this.#refusal(identify.token, intents)
    if (refusal !== undefined) return refusal
    const id = randomBytes(16).toString('hex')
    const session: Session = {
      id,
      intents,
      sequence: 0,
      events: [],
      sentUpTo: 0,
      socket,
      closedAt: 0,
      isWelcome: false,
    }
    this.#sessions.set(id, session)
    this.#sockets.set(socket, session)
    this.identifies += 1
    this.onIdentify()
    void this.#welcome(session, identify.shard)
    return undefined
  }

  #refusal(token: string | undefined, intents: number): GatewayCloseCodes | undefined {
    if (token !== this.token) return GatewayCloseCodes.AuthenticationFailed
    if ((intents & ~ALL_INTENTS) !== 0) return GatewayCloseCodes.InvalidIntents
    const flags = this.world().applicationFlags
    const isDisallowed = PRIVILEGED.some(([intent, flag]) => (intents & intent) !== 0 && (flags & flag) === 0)
    return isDisallowed ? GatewayCloseCodes.DisallowedIntents : undefined
  }

  async #welcome(session: Session, shard: [number, number] | undefined): Promise<void> {
    const world = this.world()
    for (const act of this.#take('before-ready')) await act()
    const guilds = [...world.guilds.values()]
    this.#dispatch(session, 'READY', {
      v: 10,
      user: { ...world.bot, verified: true, mfa_enabled: true, email: null, flags: 0 },
      guilds: guilds.map(({ id }) => ({ id, unavailable: true })),
      session_id: session.id,
      session_type: 'normal',
      resume_gateway_url: this.url(),
      private_channels: [],
      relationships: [],
      application: { id: world.bot.id, flags: world.applicationFlags, flags_new: String(world.applicationFlags) },
      ...(shard ? { shard } : {}),
    })
    for (const act of this.#take('before-guilds')) await act()
    const hasGuilds = (session.intents & GatewayIntentBits.Guilds) !== 0
    for (const guild of hasGuilds ? guilds : []) this.#dispatch(session, 'GUILD_CREATE', world.guildPayload(guild))
    session.isWelcome = true
  }

  #take(moment: Moment): (() => void | Promise<void>)[] {
    const now = this.#acts.filter((entry) => entry.moment === moment)
    for (const entry of now) this.#acts.splice(this.#acts.indexOf(entry), 1)
    return now.map(({ act }) => act)
  }

  #resume(socket: WebSocket, { token, session_id: id = '', seq = 0 }: Resume): GatewayCloseCodes | undefined {
    if (token !== this.token) return GatewayCloseCodes.AuthenticationFailed
    const session = this.#resumable(id, seq)
    if (!session) {
      this.#sessions.delete(id)
      send(socket, { op: GatewayOpcodes.InvalidSession, d: false })
      return undefined
    }
    if (seq > session.sequence) return GatewayCloseCodes.InvalidSeq
    session.socket?.terminate()
    session.socket = socket
    session.sentUpTo = seq
    this.#sockets.set(socket, session)
    this.resumes += 1
    this.#flush(session)
    this.#dispatch(session, 'RESUMED', {})
    return undefined
  }

  #resumable(id: string, seq: number): Session | undefined {
    const session = this.#sessions.get(id)
    if (!session) return undefined
    if (this.#refusedResumes > 0) {
      this.#refusedResumes -= 1
      return undefined
    }
    if (!session.socket && Date.now() - session.closedAt > this.settings.sessionTimeoutMs) return undefined
    return seq < session.sequence - session.events.length ? undefined : session
  }

  #dispatch(session: Session, t: string, d: object): void {
    session.sequence += 1
    session.events.push(JSON.stringify({ op: GatewayOpcodes.Dispatch, t, s: session.sequence, d }))
    if (session.events.length > KEPT_EVENTS * 2) session.events.splice(0, KEPT_EVENTS)
    this.#flush(session)
  }

  #flush(session: Session): void {
    const { socket, events, sequence } = session
    if (this.#isPaused || !socket || socket.readyState !== socket.OPEN) return
    const first = sequence - events.length
    for (; session.sentUpTo < sequence; session.sentUpTo += 1) {
      const event = events[session.sentUpTo - first]
      if (event !== undefined) socket.send(event)
    }
  }
}

const GOODBYE = 1_000
const GOING_AWAY = 1_001

function parse(raw: Buffer): Payload | undefined {
  try {
    const payload: unknown = JSON.parse(raw.toString())
    return typeof payload === 'object' && payload !== null && 'op' in payload ? (payload as Payload) : undefined
  } catch {
    // Invalid JSON is answered with a close code.
    return undefined
  }
}

function send(socket: WebSocket, payload: Payload): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ t: null, s: null, ...payload }))
}
