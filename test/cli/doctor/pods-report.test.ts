import { expect, it } from 'vitest'
import { podsReport } from '../../../src/cli/doctor/pods-report.js'
import type { ProjectConfig } from '../../../src/config.js'
import { GatewayError } from '../../../src/errors.js'
import { type Pod, type PodAddress, PodError, type Pods } from '../../../src/kubernetes/types.js'
import type { ProjectRecord } from '../../../src/store/projects.js'

const RECORD = { instance: 'x', createdAt: 1, updatedAt: 1, directory: '/workspace' }

it('ignores clusters if no project is in a pod', async () => {
  const projects = [{ ...RECORD, id: 'here', source: 'api' as const }]
  expect(await report({ listed: projects, pods: unasked() })).toEqual({
    text: '- Kubernetes: no project is in a pod; see docs/kubernetes.md',
    isHealthy: true,
  })
})

it('looks into each pod for the agent of its project, of the file and of the database', async () => {
  const listed = [
    { ...RECORD, id: 'gone', source: 'file' as const, pod: { name: 'gone-0' } },
    { ...RECORD, id: 'api', source: 'cluster' as const, pod: { name: 'api-0' } },
    { ...RECORD, id: 'odd', source: 'cluster' as const, backend: 'cursor', pod: { name: 'odd-0' } },
    { ...RECORD, id: 'old', source: 'api' as const, backend: 'pi', pod: { name: 'old-0' } },
  ]
  const file = [{ id: 'web', directory: '/srv', pod: { selector: 'app=web' }, backend: 'claude' as const }]
  const versions = { claude: '2.1.9 (Claude Code)\n', codex: undefined }
  expect(await report({ file, listed, pods: podsWith(versions, ['kubectl 1.20 is old. Update it.']) })).toEqual({
    text: [
      '! Kubernetes: kubectl 1.20 is old. Update it.',
      '✓ Kubernetes: web: claude 2.1.9 (Claude Code) in the pod found (namespace agents), works in /srv',
      '✗ Kubernetes: api: codex cannot be started in the pod found (namespace agents)',
      '    Install codex in its image, or choose another agent for the project.',
      '✓ Kubernetes: odd: claude 2.1.9 (Claude Code) in the pod found (namespace agents), works in /workspace',
      '✗ Kubernetes: old: There is no pod old-0. Check its name.',
    ].join('\n'),
    isHealthy: false,
  })
})

it('checks the configured pods even if the database cannot be opened', async () => {
  const file = [{ id: 'web', directory: '/srv', pod: { name: 'web-0' } }]
  const listProjects = async (): Promise<never> => {
    throw new GatewayError('store_unavailable', 'The database is away.')
  }
  const config = { agentBackend: 'claude' as const, codeAgentDefault: 'claude' as const, projects: file }
  expect(await podsReport(config, listProjects, podsWith({ claude: '2.1.9' }, []))).toEqual({
    text: [
      '! Kubernetes: the projects in the database cannot be read',
      '    The database is away.',
      '✓ Kubernetes: web: claude 2.1.9 in the pod found (namespace agents), works in /srv',
    ].join('\n'),
    isHealthy: true,
  })
})

function report({
  file = [],
  listed,
  pods,
}: {
  file?: ProjectConfig[]
  listed: ProjectRecord[]
  pods: Pick<Pods, 'open' | 'problems'>
}) {
  return podsReport({ agentBackend: 'codex', codeAgentDefault: 'claude', projects: file }, async () => listed, pods)
}

/** `old-0` does not exist; every other name is the same pod. */
function podsWith(versions: Record<string, string | undefined>, problems: string[]): Pick<Pods, 'open' | 'problems'> {
  return {
    problems: async () => problems,
    open: async ({ name }: PodAddress) => {
      if (name === 'old-0') throw new PodError('pod_not_found', 'There is no pod old-0. Check its name.')
      const address = { namespace: 'agents', name: 'found' }
      const found: Partial<Pod> = { address, version: async (executable) => versions[executable] }
      return found as Pod
    },
  }
}

function unasked(): Pick<Pods, 'open' | 'problems'> {
  const refuse = async (): Promise<never> => {
    throw new Error('It was asked')
  }
  return { open: refuse, problems: refuse }
}
