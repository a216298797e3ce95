/** The discovery document of an API server: only the resources used here. */
export const discovery: Record<string, Record<string, unknown>> = {
  '/version': { major: '1', minor: '32', gitVersion: 'v1.32.5', platform: 'linux/amd64' },
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [group('apps'), group('rbac.authorization.k8s.io')] },
  '/api/v1': resources('v1', { pods: 'Pod', namespaces: 'Namespace', serviceaccounts: 'ServiceAccount' }),
  '/apis/apps/v1': resources('apps/v1', { statefulsets: 'StatefulSet' }),
  '/apis/rbac.authorization.k8s.io/v1': resources('rbac.authorization.k8s.io/v1', {
    roles: 'Role',
    rolebindings: 'RoleBinding',
  }),
}

function group(name: string): Record<string, unknown> {
  const version = { groupVersion: `${name}/v1`, version: 'v1' }
  return { name, versions: [version], preferredVersion: version }
}

function resources(groupVersion: string, kinds: Record<string, string>): Record<string, unknown> {
  const list = Object.entries(kinds).map(([name, kind]) => ({
    name,
    singularName: kind.toLowerCase(),
    kind,
    namespaced: kind !== 'Namespace',
    verbs: ['create', 'delete', 'get', 'list'],
  }))
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: list }
}
