// The contract of a backend, for an agent that runs in a pod. What is special about each is in backends.test.ts.

import { mkdtempSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { vi } from 'vitest'
import { CodexBackend } from '../../src/backends/codex/backend.js'
import { createPods } from '../../src/kubernetes/pods.js'
import { describeBackendContract } from '../contract/backend-contract.js'
import { SETUPS } from '../contract/setups.js'
import type { CreateBackend, Stage } from '../contract/stage.js'
import { type LocalCluster, startLocalCluster } from './local-cluster.js'

vi.setConfig({ maxConcurrency: 8 })

const clusters = new WeakMap<Stage, LocalCluster>()

/** Its pod has the environment that the agent would have here, and the agent's CLI under its own name. */
const createInPod: CreateBackend = (config, dependencies, stage) => {
  const cluster = clusters.get(stage)
  if (!cluster) throw new Error('There is no cluster on this stage')
  const bin = mkdtempSync(join(stage.directory, 'bin-'))
  const name = `pod-${cluster.pods.length}`
  const { PATH = '', ...environment } = dependencies.environment ?? {}
  cluster.pods.push({ name, environment: { ...environment, PATH: `${bin}:${PATH}` } })
  const pods = createPods({ environment: cluster.environment, passVariables: [] })
  const backend = new CodexBackend(config, { ...dependencies, pods })
  symlinkSync(config.cliPath, join(bin, backend.name()))
  const run = backend.run.bind(backend)
  const seen = new Set<string | undefined>()
  return Object.assign(backend, {
    async *run(...[request, signal]: Parameters<typeof run>) {
      const { timeoutMs = config.queryTimeoutMs } = request
      // Otherwise a short time limit would pass while the pod is inspected, by a request that outlives this run.
      if (timeoutMs <= 1_000) await pods.open({ name }, AbortSignal.timeout(60_000))
      // The pod's own directory does not exist here.
      const place = seen.has(request.sessionId) ? {} : { workingDir: config.workingDir }
      for await (const event of run({ ...place, ...request, pod: { name } }, signal)) {
        if (event.type === 'complete' && event.result.sessionId) seen.add(event.result.sessionId)
        yield event
      }
    },
  })
}

describeBackendContract(
  'codex',
  {
    ...SETUPS.codex,
    create: createInPod,
    elsewhere: 'it runs in a pod',
    prepare: async (stage) => {
      const cluster = await startLocalCluster([])
      clusters.set(stage, cluster)
      return async () => cluster.close()
    },
  },
  'codex in a pod',
)
