import type { BackendAdapterConfig } from '../../src/backends/types.js'

/** The configuration of a backend, as far as a test does not say otherwise. */
export function adapterConfig(config: Partial<BackendAdapterConfig> = {}): BackendAdapterConfig {
  return { cliPath: 'none', workingDir: '/', queryTimeoutMs: 30_000, allowedTools: [], maxTurns: 25, ...config }
}
