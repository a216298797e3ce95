/** Status objects of an API server: refusals, and how a command ended. */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata: Record<string, never>
  status: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: Record<string, unknown>
  code?: number
}

const status = { kind: 'Status', apiVersion: 'v1', metadata: {} } as const

export function exitStatus(exitCode: number): Status {
  if (exitCode === 0) return { ...status, status: 'Success' }
  return {
    ...status,
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  }
}

export function failure(code: number, reason: string, message: string, details?: Record<string, unknown>): Status {
  return { ...status, status: 'Failure', message, reason, ...(details && { details }), code }
}

export function internalError(message: string): Status {
  const causes = [{ message }]
  return failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes })
}

export function notFound(name: string): Status {
  return failure(404, 'NotFound', `pods "${name}" not found`, { name, kind: 'pods' })
}

export function forbidden(verb: string, resource: string, name: string | undefined, namespace: string): Status {
  const object = name === undefined ? 'pods is' : `pods "${name}" is`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  return failure(
    403,
    'Forbidden',
    `${object} forbidden: User "system:serviceaccount:aetheel:gateway" cannot ${verb} resource "${resource}" in API group "" ${where}`,
    { ...(name !== undefined && { name }), kind: 'pods' },
  )
}
