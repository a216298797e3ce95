import type { BackendName } from '../backends/types.js'

/** Which session of its agent each conversation goes on in. A session of one agent means nothing to another. */
export class SessionManager {
  readonly #sessions = new Map<string, { backend: BackendName; sessionId: string }>()

  get(conversationId: string, backend: BackendName): string | undefined {
    const session = this.#sessions.get(conversationId)
    return session?.backend === backend ? session.sessionId : undefined
  }

  set(conversationId: string, backend: BackendName, sessionId: string): void {
    this.#sessions.set(conversationId, { backend, sessionId })
  }

  delete(conversationId: string): void {
    this.#sessions.delete(conversationId)
  }
}
