import { InvalidArgumentError } from 'commander'
import { resolveBackendName } from '../backends/registry.js'
import type { BackendName } from '../backends/types.js'

export function backendArgument(value: string): BackendName {
  try {
    return resolveBackendName(value)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

export function countArgument(value: string): number {
  const count = Number(value)
  if (Number.isInteger(count) && count > 0 && count <= 10_000) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}
