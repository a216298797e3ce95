/** What the HTTP side is made of, and how its requests and routes look. Types alone. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { PlatformEndpoint } from '../channels/types.js'
import type { GatewayConfig } from '../config.js'
import type { CredentialStore } from '../credentials/credential-store.js'
import type { GatewayParts } from '../gateway.js'
import type { Log } from '../log.js'
import type { Metrics } from '../metrics.js'
import type { ProjectService } from '../projects/project-service.js'
import type { Scope } from '../store/tokens.js'

export interface ServiceDependencies {
  config: GatewayConfig
  gateway: GatewayParts
  projects: ProjectService
  credentials: CredentialStore
  metrics: Metrics
  /** What platforms call. */
  endpoints?: PlatformEndpoint[]
  /** Where the files of the dashboard are; left out, where the build puts them. */
  dashboardDirectory?: string
  log: Log
  now: () => number
  newId: () => string
}

/** A server whose routes are typed by their zod schemas. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

/** Who asks: the token that came with the request. */
export interface Caller {
  tokenId: string
  tokenHash: string
  /** For the audit log. */
  name: string
  scope: Scope
  /** The ids of the projects it may use; left out, all. */
  projects?: string[] | undefined
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the token must be allowed; `public` needs none. A route without it is refused when it is registered. */
    scope?: Scope | 'public'
    /** Called by a platform, under the name of the public URL, too. */
    isPlatform?: boolean
    /** An event stream: may be opened by a ticket, and is ended when the server stops. */
    isStream?: boolean
    /** A file of the dashboard. */
    isDashboard?: boolean
    /** Brings its token in the body, by which its rate is then counted. */
    isLogin?: boolean
    /** Requests to it are not counted: a balancer must not be shut out by strangers of its address. */
    isUnlimited?: boolean
    /** It tells how the gateway is, also while no token can be looked up. */
    answersWithoutStore?: boolean
    /** Tokens of single projects reach what is under `/projects/:id` of theirs, and routes with this: those that tell
     *  nothing of other projects, or look at `caller.projects` themselves. */
    allowsProjectTokens?: boolean
  }

  interface FastifyRequest {
    /** None on public routes. */
    caller?: Caller
    /** Of a token that there is; whether it may do this is not said. */
    tokenHash?: string
  }
}
