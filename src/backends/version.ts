import { startProcess } from '../processes/local-process.js'

export interface VersionKnowledge {
  /** The oldest version that the conformance suite has passed with. */
  oldestKnown: string
  /** Published security holes; `below` is the first version without the hole. */
  holes: ReadonlyArray<{ below: string; what: string }>
}

/** What `<cli> --version` says, or undefined when it says nothing that looks like one before the signal. */
export async function readVersion(
  executable: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  let output = ''
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(0, 10_000)
  }
  const child = startProcess({
    executable,
    args: ['--version'],
    cwd: '/',
    environment,
    stdin: '',
    runId: `version-${process.pid}-${process.hrtime.bigint()}`,
    stopSignal: 'SIGTERM',
    onStdout: collect,
    onStderr: collect,
  })
  if (signal.aborted) child.stop()
  signal.addEventListener('abort', child.stop)
  await child.ended
  signal.removeEventListener('abort', child.stop)
  return /\d+\.\d+\.\d+/.exec(output)?.[0]
}

export function problemsOfVersion(version: string | undefined, knowledge: VersionKnowledge): string[] {
  if (version === undefined) return ['Its version could not be read: `--version` did not answer with one.']
  const holes = knowledge.holes
    .filter(({ below }) => compareVersions(version, below) < 0)
    .map(({ below, what }) => `Version ${version} has a known security hole (${what}): update to ${below} or newer.`)
  const isOld = compareVersions(version, knowledge.oldestKnown) < 0
  if (!isOld) return holes
  return [...holes, `Version ${version} is older than ${knowledge.oldestKnown}, the oldest one known to work here.`]
}

/** Negative when `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  const index = left?.findIndex((part, position) => part !== right?.[position]) ?? -1
  return index === -1 ? 0 : (left?.[index] ?? 0) - (right?.[index] ?? 0)
}
