import type { Session, Sessions } from '../store/sessions.js'

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

  async get(conversationId: string, backend: string): Promise<Session | undefined> {
    const { idleMs, now } = this.options
    const session = await this.sessions.get(conversationId)
    if (!session) return undefined
    const isIdle = idleMs > 0 && now() - session.usedAt >= idleMs
    if (!isIdle && session.backend === backend) return session
    await this.sessions.delete(conversationId, session.sessionId)
    return undefined
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
