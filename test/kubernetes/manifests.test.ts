import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { StatefulSet } from 'kubernetes-types/apps/v1.js'
import type { ServiceAccount } from 'kubernetes-types/core/v1.js'
import type { Role, RoleBinding } from 'kubernetes-types/rbac/v1.js'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { BACKEND_NAMES } from '../../src/backends/types.js'
import { loadConfig } from '../../src/config.js'
import { POD_DIRECTORY } from '../../src/kubernetes/types.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const project = join(import.meta.dirname, '..', '..')
const directory = join(project, 'docs', 'kubernetes')

/** Where the types of each kind are. */
const modules: Record<string, string> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'rbac.authorization.k8s.io/v1': 'rbac/v1',
}

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string }
}

const manifests = readdirSync(directory).flatMap((name) =>
  parseAllDocuments(readFileSync(join(directory, name), 'utf8')).map((document) => document.toJS() as Manifest),
)

interface Kinds {
  Namespace: Manifest
  ServiceAccount: ServiceAccount
  Role: Role
  RoleBinding: RoleBinding
  StatefulSet: StatefulSet & Manifest
}

function only<K extends keyof Kinds>(kind: K): Kinds[K] {
  const [found, ...others] = manifests.filter((manifest) => manifest.kind === kind)
  expect([found?.kind, others]).toEqual([kind, []])
  return found as Kinds[K]
}

/** The errors of a compiler that knows the types of Kubernetes: every unknown, missing and wrong field. */
async function complaints(checked: Manifest[]): Promise<string> {
  const place = temporaryDirectory()
  mkdirSync(join(place, 'node_modules'))
  symlinkSync(join(project, 'node_modules', 'kubernetes-types'), join(place, 'node_modules', 'kubernetes-types'))
  const lines = checked.map(({ apiVersion, kind, ...rest }, index) => {
    const type = `import('kubernetes-types/${modules[apiVersion]}.js').${kind}`
    return `export const manifest${index}: ${type} = ${JSON.stringify({ apiVersion, kind, ...rest })}`
  })
  writeFileSync(join(place, 'manifests.ts'), lines.join('\n'))
  const compiler = join(project, 'node_modules', '.bin', 'tsc')
  const args = ['--noEmit', '--strict', '--module', 'nodenext', '--types', '', join(place, 'manifests.ts')]
  return promisify(execFile)(compiler, args, { cwd: place }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
}

describe('the example manifests', () => {
  it('are what Kubernetes knows', async () => {
    expect(await complaints(manifests)).toBe('')
  })

  it('would be found out if they were not', async () => {
    const { spec, ...set } = only('StatefulSet')
    expect(await complaints([{ ...set, spec: { ...spec, replica: 1 } } as Manifest])).toMatch(
      /"replica"' does not exist/,
    )
    expect(await complaints([{ ...set, spec: { replicas: 1 } } as Manifest])).toMatch(
      /missing the following properties|is missing in type/,
    )
  })

  it('let the gateway look at pods and run commands in them, and no more', () => {
    expect(only('Role').rules).toEqual([
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['pods/exec'], verbs: ['create', 'get'] },
    ])
    const { metadata: role } = only('Role')
    const { metadata: account } = only('ServiceAccount')
    const { roleRef, subjects } = only('RoleBinding')
    expect([roleRef.kind, roleRef.name]).toEqual(['Role', role?.name])
    expect(subjects).toEqual([{ kind: 'ServiceAccount', name: account?.name, namespace: account?.namespace }])
  })

  it('are all in the one namespace', () => {
    const { metadata } = only('Namespace')
    const others = manifests.filter(({ kind }) => kind !== 'Namespace')
    expect(new Set(others.map((manifest) => manifest.metadata.namespace))).toEqual(new Set([metadata.name]))
  })

  it('have a pod that is discovered, with an agent that we know and its directory', () => {
    const { spec } = only('StatefulSet')
    const { metadata, spec: pod } = spec?.template ?? {}
    const { kubernetesLabel } = loadConfig({ HOME: '/nobody' })
    expect(BACKEND_NAMES).toContain(metadata?.labels?.[kubernetesLabel])
    expect(metadata?.labels).toMatchObject(spec?.selector.matchLabels ?? { none: 'given' })
    expect(pod?.containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath)).toContain(POD_DIRECTORY)
    const volumes = [...(pod?.volumes ?? []), ...(spec?.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)]
    const mounted = pod?.containers[0]?.volumeMounts?.map(({ name }) => name)
    expect(new Set(mounted)).toEqual(new Set(volumes.map((volume) => volume?.name)))
  })
})
