// Where OpenCode servers come from: the contract, and a server started by somebody else. `managed-servers.ts` starts its own.

import { messageOf } from '../../../errors.js'
import { problemsOfVersion } from '../../engine/version.js'
import type { AgentLogin, AgentProbe, ProbeOptions, SecretFile } from '../../types.js'
import { OPENCODE } from '../format.js'
import { OPENCODE_LOGIN } from '../login.js'
import { OpenCodeClient } from './client.js'

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
  /** Whether OpenCode can be used at all, checked as cheaply as possible. Contract: never rejects. */
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

/** A server started by somebody else. */
export class ExternalServer implements OpenCodeServers {
  constructor(private readonly endpoint: OpenCodeEndpoint) {}

  async acquire({ environment, secretFiles, isUntrusted }: ServerNeeds): Promise<ServerLease> {
    const { url } = this.endpoint
    const advice = 'Set OPENCODE_MANAGED=true, or OPENCODE_ENABLED=false for one process per turn.'
    if (isUntrusted) {
      throw new NeedsRefused(`The OpenCode server at ${url} cannot be restricted for an untrusted project. ${advice}`)
    }
    if (Object.keys(environment).length > 0 || secretFiles.length > 0) {
      throw new NeedsRefused(`The OpenCode server at ${url} cannot be given credentials for one turn. ${advice}`)
    }
    return { endpoint: this.endpoint, release: async () => {} }
  }

  async isFound(): Promise<boolean> {
    return (await this.probe()).isFound
  }

  async probe(): Promise<AgentProbe> {
    const { url } = this.endpoint
    const login: AgentLogin = {
      state: 'unknown',
      why: `The server at ${url} has its own logins.`,
      fix: OPENCODE_LOGIN,
    }
    try {
      const { version } = await new OpenCodeClient(this.endpoint).health()
      if (version === undefined)
        return { isFound: true, path: url, problems: ['It does not report its version.'], login }
      return { isFound: true, path: url, version, problems: problemsOfVersion(version, OPENCODE.versions), login }
    } catch (error) {
      return { isFound: false, path: url, problems: [messageOf(error)] }
    }
  }

  async stop(): Promise<void> {}
}
