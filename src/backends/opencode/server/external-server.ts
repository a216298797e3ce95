import { messageOf } from '../../../errors.js'
import { OPENCODE } from '../format.js'
import { OPENCODE_LOGIN } from '../login.js'
import type { AgentLogin, AgentProbe } from '../../types.js'
import { problemsOfVersion } from '../../engine/version.js'
import { OpenCodeClient } from './client.js'
import {
  NeedsRefused,
  type OpenCodeEndpoint,
  type OpenCodeServers,
  type ServerLease,
  type ServerNeeds,
} from './servers.js'

/** A server started by somebody else. */
export class ExternalServer implements OpenCodeServers {
  constructor(private readonly endpoint: OpenCodeEndpoint) {}

  async acquire({ environment, secretFiles, isUntrusted }: ServerNeeds): Promise<ServerLease> {
    const { url } = this.endpoint
    const advice = 'Set OPENCODE_MANAGED=true, or OPENCODE_ENABLED=false for one process per turn.'
    if (isUntrusted) {
      throw new NeedsRefused(
        `The OpenCode server at ${url} is not told what an untrusted project may not do. ${advice}`,
      )
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
      why: `The server at ${url} has logins of its own.`,
      fix: OPENCODE_LOGIN,
    }
    try {
      const { version } = await new OpenCodeClient(this.endpoint).health()
      if (version === undefined) return { isFound: true, path: url, problems: ['It does not tell its version.'], login }
      return { isFound: true, path: url, version, problems: problemsOfVersion(version, OPENCODE.versions), login }
    } catch (error) {
      return { isFound: false, path: url, problems: [messageOf(error)] }
    }
  }

  async stop(): Promise<void> {}
}
