import type { BackendAdapterConfig } from '../../src/backends/types.js'

/** The configuration of a backend, unless a test overrides it. */
export function adapterConfig(config: Partial<BackendAdapterConfig> = {}): BackendAdapterConfig {
  return { cliPath: 'none', workingDir: '/', queryTimeoutMs: 30_000, allowedTools: [], maxTurns: 25, ...config }
}
