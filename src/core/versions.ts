export function parseVersion(output: string): string | undefined {
  return /\d+\.\d+\.\d+/.exec(output)?.[0]
}

/** False if the version is not known. */
export function isAtLeast(version: string | undefined, oldest: string): boolean {
  return version !== undefined && compareVersions(version, oldest) >= 0
}

/** Negative if `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  const index = left?.findIndex((part, position) => part !== right?.[position]) ?? -1
  return index === -1 ? 0 : (left?.[index] ?? 0) - (right?.[index] ?? 0)
}
