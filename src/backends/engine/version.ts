import { compareVersions, parseVersion } from '../../core/versions.js'
import { askCli } from './ask-cli.js'

export interface VersionKnowledge {
  /** The oldest version that has passed the conformance suite. */
  oldestKnown: string
  /** Published security holes; `below` is the first version without the hole. */
  holes: ReadonlyArray<{ below: string; what: string }>
}

/** The version printed by `<cli> --version`, or undefined if it prints none before the signal. */
export async function readVersion(
  executable: string,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  return parseVersion((await askCli(executable, ['--version'], environment, signal)).output)
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
