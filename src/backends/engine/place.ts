// Where a CLI runs: on this machine or in a pod. Backends access anything outside their turn through this.

import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  type Pod,
  type PodFile,
  type PodProcess,
  type PodProcessOptions,
  podFilesPath,
} from '../../kubernetes/types.js'
import { startProcess } from '../../processes/local-process.js'
import { createRunDirectory } from '../../processes/run-directory.js'
import { parseVersion } from '../../core/versions.js'

export interface Place {
  isPod: boolean
  /** The environment of anything that runs there. */
  environment: Readonly<Record<string, string | undefined>>
  home: string
  files: RunFiles
  /** The version of the turn's CLI. */
  version(signal: AbortSignal): Promise<string | undefined>
  /** Undefined if there is no such file. */
  readFile(path: string, signal: AbortSignal): Promise<string | undefined>
  /** The names in a directory; empty if there is no such directory. */
  list(directory: string, signal: AbortSignal): Promise<string[]>
  start(options: PlaceProcess): PodProcess
  /** Removes the files. */
  leave(): void
}

/** Files of one run, in a private directory that is removed when the run ends. */
export interface RunFiles {
  path: string
  /** Writes a file and returns its absolute path. */
  write(name: string, content: string): string
  link(name: string, target: string): void
  /** At any path; not removed with the run. */
  makeDirectory(path: string): void
}

type PlaceProcess = Omit<PodProcessOptions, 'files'>

interface LocalPlaceOptions {
  operator: NodeJS.ProcessEnv
  /** The part of it that the CLI sees. */
  environment: Record<string, string>
  ownerId: string | undefined
  version?: Place['version']
}

export function localPlace({ operator, environment, ownerId, version = unknown }: LocalPlaceOptions): Place {
  const directory = createRunDirectory(ownerId)
  const pathOf = (name: string): string => {
    const path = join(directory.path, name)
    mkdirSync(dirname(path), { recursive: true })
    return path
  }
  return {
    isPod: false,
    environment: operator,
    home: operator['HOME'] ?? homedir(),
    files: {
      path: directory.path,
      write(name, content) {
        pathOf(name)
        return directory.write(name, content)
      },
      link: (name, target) => symlinkSync(target, pathOf(name)),
      makeDirectory: (path) => void mkdirSync(path, { recursive: true }),
    },
    version,
    readFile: async (path) => (existsSync(path) ? readFile(path, 'utf8') : undefined),
    list: async (path) => (existsSync(path) ? readdirSync(path) : []),
    start({ directory: cwd, defaults, environment: own, expects, ...options }) {
      const child = startProcess({ ...options, cwd, environment: { ...defaults, ...environment, ...own } })
      const hasExpected = (): boolean => expects !== undefined && existsSync(join(directory.path, expects))
      const ended = child.ended.then((exit) =>
        'exitCode' in exit ? { exitCode: exit.exitCode, hasExpected: hasExpected() } : exit,
      )
      return { ended, stop: child.stop }
    },
    leave: directory.remove,
  }
}

const unknown = async (): Promise<undefined> => undefined

/** `executable` is the CLI whose version `version` reports. */
export function podPlace(pod: Pod, runId: string, executable?: string): Place {
  const files: PodFile[] = []
  const path = podFilesPath(runId)
  return {
    isPod: true,
    environment: pod.environment,
    home: pod.environment['HOME'] ?? '/',
    files: {
      path,
      write(name, content) {
        files.push({ name, content })
        return `${path}/${name}`
      },
      link: (name, linkTo) => void files.push({ name, linkTo }),
      makeDirectory: (directory) => void files.push({ directory }),
    },
    version: async (signal) => parseVersion((executable && (await pod.version(executable, signal))) ?? ''),
    readFile: pod.readFile,
    list: pod.list,
    start: (options) => pod.start({ ...options, files }),
    leave: () => {},
  }
}
