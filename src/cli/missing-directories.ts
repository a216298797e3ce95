import { existsSync } from 'node:fs'
import type { GatewayConfig } from '../config.js'
import { isDirectory } from '../core/paths.js'
import type { Project } from '../store/projects.js'

/** A configured directory that an agent cannot work in. */
export interface MissingDirectory {
  /** The setting or project that names it. */
  setting: string
  problem: string
  fix: string
}

type Workplace = Pick<Project, 'id' | 'directory' | 'pod'>

/** Checks the settings and these projects; directories in pods are not checked. */
export function missingDirectories(
  { workingDir, inbound }: Pick<GatewayConfig, 'workingDir'> & Partial<Pick<GatewayConfig, 'inbound'>>,
  projects: Workplace[],
): MissingDirectory[] {
  const { cwd } = inbound?.reply ?? {}
  const directories = [
    ['workingDir', workingDir],
    ...(cwd === undefined ? [] : [['inbound.reply.cwd', cwd]]),
    ...projects.flatMap(({ id, directory, pod }) => (pod ? [] : [[`project ${id}`, directory]])),
  ] as Array<[string, string]>
  return directories.flatMap(([setting, path]) => (isDirectory(path) ? [] : [describe(setting, path)]))
}

function describe(setting: string, path: string): MissingDirectory {
  if (existsSync(path)) return { setting, problem: `${path} is not a directory`, fix: 'Choose a directory.' }
  return { setting, problem: `the directory ${path} does not exist`, fix: `Run: mkdir -p ${quoted(path)}` }
}

/** As one shell word. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
}
