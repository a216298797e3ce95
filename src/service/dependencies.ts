/** Types of the HTTP service: its dependencies, requests and routes. */

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
  /** Webhooks that platforms call. */
  endpoints?: PlatformEndpoint[]
  /** Directory of the dashboard's files; defaults to the build output. */
  dashboardDirectory?: string
  log: Log
  now: () => number
  newId: () => string
}

/** A server whose routes are typed by their zod schemas. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

/** The token that a request came with. */
export interface Caller {
  tokenId: string
  tokenHash: string
  /** For the audit log. */
  name: string
  scope: Scope
  /** The projects it may use; all if omitted. */
  projects?: string[] | undefined
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope the token needs; `public` needs no token. Registering a route without one throws. */
    scope?: Scope | 'public'
    /** Called by a platform, also under the public URL's host name. */
    isPlatform?: boolean
    /** An event stream: can be opened with a ticket, and ends when the server stops. */
    isStream?: boolean
    /** A file of the dashboard. */
    isDashboard?: boolean
    /** Has its token in the body. Its rate limit counts for that token. */
    isLogin?: boolean
    /** Its body is a file of any type. The handler gets it as a stream, and limits its size. */
    takesFile?: boolean
    /** Not rate-limited: others at its address must not lock a load balancer out. */
    isUnlimited?: boolean
    /** Reports the gateway's state, even while tokens cannot be looked up. */
    answersWithoutStore?: boolean
    /**
     * Project tokens can use routes under their own `/projects/:id`, and routes with this flag: those that reveal
     * nothing about other projects, or check `caller.projects` themselves.
     */
    allowsProjectTokens?: boolean
  }

  interface FastifyRequest {
    /** The media type of an uploaded file, as its sender gave it. */
    fileType?: string | undefined
    /** Absent on public routes. */
    caller?: Caller
    /** The hash of an existing token, whether or not it may do this. */
    tokenHash?: string
  }
}
