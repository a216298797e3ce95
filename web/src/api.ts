import { AetheelApiError, AetheelClient, type ApiErrorCode } from '../../src/client/aetheel-client.js'

const sessionEnds = new Set<() => void>()

/** Calls the listener when the login cookie is no longer valid. Returns the unsubscribe function. */
export function onSessionEnd(listener: () => void): () => void {
  sessionEnds.add(listener)
  return () => sessionEnds.delete(listener)
}

/** The gateway that this page came from. */
export const api = new AetheelClient({
  baseUrl: '',
  fetch: async (input, init) => {
    const response = await fetch(input, init)
    if (response.status === 401) for (const tell of sessionEnds) tell()
    return response
  },
})

export function codeOf(error: unknown): ApiErrorCode | undefined {
  return error instanceof AetheelApiError ? error.code : undefined
}

/** What went wrong, as a sentence. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof AetheelApiError)) return error instanceof Error ? error.message : String(error)
  return error.code === 'unreachable' ? 'The gateway is not responding. Check that it is running.' : error.message
}
