import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const project = join(import.meta.dirname, '..')

/** Gateways compiled to JavaScript: as TypeScript, each would need a second of CPU to start. */
export class GatewayBuild {
  #directory: Promise<string> | undefined

  /** The gateway that a cell talks to. */
  async program(): Promise<string> {
    return join(await this.#compiled(), 'conformance', 'gateway-process.js')
  }

  /** The command `aetheel`. */
  async command(): Promise<string> {
    return join(await this.#compiled(), 'src', 'main.js')
  }

  async remove(): Promise<void> {
    if (this.#directory) await rm(await this.#directory, { recursive: true })
  }

  /** On first use. */
  #compiled(): Promise<string> {
    return (this.#directory ??= compile())
  }
}

async function compile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'aetheel-build-'))
  for (const name of ['package.json', 'node_modules']) await symlink(join(project, name), join(directory, name))
  const compiler = join(project, 'node_modules', '.bin', 'tsc')
  await promisify(execFile)(compiler, ['-p', project, '--noEmit', 'false', '--noCheck', '--outDir', directory])
  return directory
}
