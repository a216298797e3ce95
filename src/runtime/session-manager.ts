import type { Session, SessionRecord, Sessions } from '../store/sessions.js'

interface SessionOptions {
  /** A session idle for this long is not resumed; 0 keeps it forever. */
  idleMs: number
  now: () => number
}

/** Tracks which agent session each conversation continues in. A session of one agent means nothing to another. */
export class SessionManager {
  constructor(
    private readonly sessions: Pick<Sessions, 'get' | 'set' | 'delete' | 'reset'>,
    private readonly options: SessionOptions,
  ) {}

  /** Deletes a session that cannot be resumed. */
  async get(conversationId: string, backend: string, idleMs?: number): Promise<SessionRecord | undefined> {
    const session = await this.sessions.get(conversationId)
    if (!session || this.#isFresh(session, backend, idleMs)) return session
    await this.sessions.delete(conversationId, session.sessionId)
    return undefined
  }

  /** Like `get`, but never deletes the session: something else may still resume it. */
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

  /** Called when the agent has lost the session. */
  async forget({ conversationId, sessionId }: Session): Promise<void> {
    await this.sessions.delete(conversationId, sessionId)
  }

  /** The next turn begins a fresh session, even if one is running now. Returns whether there was a session. */
  async reset(conversationId: string): Promise<boolean> {
    return this.sessions.reset(conversationId, this.options.now())
  }
}
