import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import fastify, { type RouteOptions } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config.js'
import { createScrubber } from '../../src/credentials/scrubber.js'
import { createApp } from '../../src/service/app.js'
import { issueToken } from '../../src/service/auth.js'
import type { App, ServiceDependencies } from '../../src/service/dependencies.js'
import { DEFAULT_LIMITS, type Limits } from '../../src/service/guards.js'
import { LoginCodes } from '../../src/service/login-codes.js'
import { registerRoutes } from '../../src/service/routes/index.js'
import type { Scope } from '../../src/store/tokens.js'
import { putDatabase } from '../kit/put-database.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'
import { lineLog } from '../kit/log.js'
import { openTestStore } from '../kit/engines.js'

export const START_AT = Date.UTC(2026, 0, 2, 3, 4, 5)

interface StageOptions {
  environment?: Record<string, string>
  limits?: Partial<Limits>
  dashboardDirectory?: string
  /** Further routes, such as a stream. */
  addRoutes?: (app: App) => void
}

export type Stage = Awaited<ReturnType<typeof createStage>>

/** The app on its own store, with nothing behind the guards: these tests get no further. */
export async function createStage({ environment = {}, limits = {}, addRoutes = () => {}, ...rest }: StageOptions = {}) {
  const home = temporaryDirectory()
  const { log, logged } = lineLog()
  const file = join(home, 'aetheel.db')
  putDatabase({ file })
  const store = await openTestStore({ file })
  const clock = { now: START_AT }
  const now = (): number => clock.now
  const config = loadConfig({ HOME: home, AETHEEL_HOME: home, HTTP_PORT: '0', ...environment })
  const gateway = { store, scrubber: createScrubber() }
  const dependencies = { config, gateway, log, now, newId: randomUUID, ...rest } as unknown as ServiceDependencies
  const codes = new LoginCodes(now)
  const app = await createApp(dependencies, { ...DEFAULT_LIMITS, ...limits }, codes)
  addRoutes(app)
  onTestFinished(() => app.close())
  const tokenWith = async (scope: Scope, rest: { projects?: string[]; expiresAt?: number } = {}): Promise<string> =>
    (await issueToken(store.tokens, { name: scope, scope, ...rest }, { now, newId: randomUUID })).token
  return { app, store, dependencies, config, home, clock, now, logged, tokenWith, codes }
}

/** The token as a header. */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}

/** All routes, as registered. */
export function allRoutes(dependencies: ServiceDependencies): Array<{ method: string; url: string; scope: string }> {
  const routes: RouteOptions[] = []
  const recorder = fastify({ exposeHeadRoutes: false }).withTypeProvider<ZodTypeProvider>()
  recorder.addHook('onRoute', (route) => void routes.push(route))
  recorder.setValidatorCompiler(() => () => true)
  recorder.setSerializerCompiler(() => JSON.stringify)
  registerRoutes(recorder, dependencies)
  const recorded = routes.flatMap(({ method, url, config }) =>
    [method].flat().map((single) => ({ method: single, url, scope: config?.scope ?? 'none' })),
  )
  return [
    ...recorded,
    { method: 'POST', url: '/tickets', scope: 'read' },
    { method: 'POST', url: '/login', scope: 'public' },
    { method: 'POST', url: '/login/code', scope: 'public' },
    { method: 'POST', url: '/logout', scope: 'public' },
    { method: 'GET', url: '/me', scope: 'read' },
    { method: 'GET', url: '/openapi.json', scope: 'public' },
    { method: 'GET', url: '/docs', scope: 'public' },
    { method: 'GET', url: '/docs/*', scope: 'public' },
    { method: 'GET', url: '/docs/api', scope: 'public' },
    { method: 'GET', url: '/', scope: 'public' },
    { method: 'GET', url: '/assets/:name', scope: 'public' },
  ]
}

/** A path that matches the route. */
export function pathFor(url: string): string {
  return url.replaceAll(/:\w+|\*/g, 'some')
}
