/**
 * One process per turn in a pod, through the real kubectl. The agent's home, keys and CLI are only in the pod; the
 * gateway's own environment has none of them.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createBackend } from '../src/backends/registry.js'
import { CONFIG_FILE_NAME } from '../src/config.js'
import { createPods } from '../src/kubernetes/pods.js'
import { FakeCluster } from '../test/kubernetes/fake-cluster.js'
import type { FakePod } from '../test/kubernetes/fake-pod.js'
import { adapterConfig, gatewayEnvironment, idleServer, type Place, type PlaceOptions } from './place.js'
import { createSandbox, type Sandbox } from './sandbox.js'

const podName = 'agent-0'
const podHome = '/root'
const projectId = 'in-a-pod'

export interface PodPlace extends Place {
  cluster: FakeCluster
  pod: FakePod
}

export async function openPod({ agent, installation, modelUrl, log }: PlaceOptions): Promise<PodPlace> {
  const host = await createSandbox(agent, modelUrl, installation.path, idleServer)
  const home = host.environment['HOME'] ?? ''
  const cluster = await FakeCluster.start()
  const pod = await cluster.addPod({
    name: podName,
    mounts: {
      [podHome]: home,
      '/workspace': host.workspace,
      '/tmp': host.temporary,
      [import.meta.dirname]: import.meta.dirname,
      [dirname(process.execPath)]: dirname(process.execPath),
    },
    environment: {
      PATH: `${installation.commands}:${installation.path}`,
      HOME: podHome,
      LANG: 'C.UTF-8',
      ...agent.environment(modelUrl, podHome),
    },
  })
  const environment = { PATH: installation.path, HOME: home, LANG: 'C.UTF-8', KUBECONFIG: cluster.kubeconfig }
  const sandbox: Sandbox = {
    ...host,
    environment,
    processes: async () => [...(await host.processes()), ...(await pod.processes())],
    // A pod takes its volumes with it.
    runFiles: async () => (pod.container.isAlive() ? host.runFiles() : []),
    async remove() {
      await cluster.close()
      await host.remove()
    },
  }
  await mkdir(join(home, '.aetheel'), { mode: 0o700 })
  const projects = { [projectId]: { pod: { name: podName } } }
  await writeFile(join(home, '.aetheel', CONFIG_FILE_NAME), JSON.stringify({ projects }))
  const config = { ...adapterConfig(agent, installation, host.workspace), cliPath: agent.binary }
  return {
    cluster,
    pod,
    sandbox,
    backend: createBackend(agent.name, config, {
      environment,
      log,
      pods: createPods({ environment, passVariables: [] }),
    }),
    request: { pod: { name: podName } },
    gatewayEnvironment: gatewayEnvironment(agent, { ...installation, cliPath: agent.binary }, sandbox),
    gatewayProject: projectId,
    stays: () => false,
    close: async () => {},
  }
}
