import type { Session, SessionRecord, Sessions } from '../store/sessions.js'

interface SessionOptions {
  /** A session that nobody used for so long is not continued; 0 keeps it for ever. */
  idleMs: number
  now: () => number
}

/** Which session of its agent each conversation goes on in. A session of one agent means nothing to another. */
export class SessionManager {
  constructor(
    private readonly sessions: Pick<Sessions, 'get' | 'set' | 'delete' | 'reset'>,
    private readonly options: SessionOptions,
  ) {}

  /** Lets go of one that cannot be continued. */
  async get(conversationId: string, backend: string, idleMs?: number): Promise<SessionRecord | undefined> {
    const session = await this.sessions.get(conversationId)
    if (!session || this.#isFresh(session, backend, idleMs)) return session
    await this.sessions.delete(conversationId, session.sessionId)
    return undefined
  }

  /** As `get`, for who is no user of it: somebody else may continue it yet. */
  async peek(conversationId: string, backend: string, idleMs?: number): Promise<SessionRecord | undefined> {
    const session = await this.sessions.get(conversationId)
    return session && this.#isFresh(session, backend, idleMs) ? session : undefined
  }

  #isFresh(session: SessionRecord, backend: string, idleMs = this.options.idleMs): boolean {
    const isIdle = idleMs > 0 && this.options.now() - session.usedAt >= idleMs
    return !isIdle && session.backend === backend
  }

  async set(session: Session): Promise<void> {
    await this.sessions.set(session, this.options.now())
  }

  /** The agent has lost it. */
  async forget({ conversationId, sessionId }: Session): Promise<void> {
    await this.sessions.delete(conversationId, sessionId)
  }

  /** The next turn begins a fresh session, also after one that runs now. Whether there was one. */
  async reset(conversationId: string): Promise<boolean> {
    return this.sessions.reset(conversationId, this.options.now())
  }
}
