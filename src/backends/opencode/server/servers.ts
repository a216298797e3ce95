/** The contract between the backend and whoever has an OpenCode server for it. */

import type { AgentProbe, SecretFile } from '../../types.js'

export interface OpenCodeEndpoint {
  /** Without a slash at the end. */
  url: string
  username: string
  password?: string
  /** What to do when something is wrong with it; left out, that of a server which the operator starts. */
  advice?: string
}

/** What a run needs of the server's own process: these cannot be said per request. */
export interface ServerNeeds {
  environment: Record<string, string>
  secretFiles: SecretFile[]
  isUntrusted: boolean
}

/** How a run leaves a server: `untidy` when its tools may have left something, `broken` when the server did not answer. */
export type LeftBehind = 'nothing' | 'untidy' | 'broken'

export interface ServerLease {
  endpoint: OpenCodeEndpoint
  /** Contract: called once, when nothing of the run is at work on the server. Never rejects; settles when what the run
   *  has left, if it may have left something, is gone. */
  release(left: LeftBehind): Promise<void>
}

export interface OpenCodeServers {
  /** Contract: rejects with a sentence for the operator; with `NeedsRefused` where it would never help to try again. */
  acquire(needs: ServerNeeds, signal: AbortSignal): Promise<ServerLease>
  /** Contract: never rejects. */
  probe(): Promise<AgentProbe>
  /** Contract: nothing is acquired afterwards. */
  stop(): Promise<void>
}

/** Thrown by `acquire`: no server here will ever do that. */
export class NeedsRefused extends Error {
  override readonly name = 'NeedsRefused'
}
