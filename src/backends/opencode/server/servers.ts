/** The contract between the backend and the providers of OpenCode servers. */

import type { AgentProbe, ProbeOptions, SecretFile } from '../../types.js'

export interface OpenCodeEndpoint {
  /** Without a trailing slash. */
  url: string
  username: string
  password?: string
  /** Advice for error messages; defaults to that for a server started by the operator. */
  advice?: string
}

/** What a run needs from the server's process, because it cannot be set per request. */
export interface ServerNeeds {
  environment: Record<string, string>
  secretFiles: SecretFile[]
  isUntrusted: boolean
}

/** How a run leaves a server: `untidy` if its tools may have left processes behind, `broken` if it stopped answering. */
export type LeftBehind = 'nothing' | 'untidy' | 'broken'

export interface ServerLease {
  endpoint: OpenCodeEndpoint
  /** Contract: called once, when the run is no longer active on the server. Never rejects; settles when anything the run left
   *  behind has been cleaned up. */
  release(left: LeftBehind): Promise<void>
}

export interface OpenCodeServers {
  /** Contract: rejects with a sentence for the operator, and with `NeedsRefused` if a retry can never succeed. */
  acquire(needs: ServerNeeds, signal: AbortSignal): Promise<ServerLease>
  /** Whether OpenCode can be used at all; asks no more than it must. Contract: never rejects. */
  isFound(): Promise<boolean>
  /** Contract: never rejects. */
  probe(options?: ProbeOptions): Promise<AgentProbe>
  /** Contract: nothing can be acquired afterwards. */
  stop(): Promise<void>
}

/** Thrown by `acquire` if these servers can never meet the needs. */
export class NeedsRefused extends Error {
  override readonly name = 'NeedsRefused'
}
