import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const project = join(import.meta.dirname, '..')

/** Gateways compiled to JavaScript: as TypeScript, each would need a second of CPU to start. */
export class GatewayBuild {
  #directory: Promise<string> | undefined

  /** The program to start; compiled on first use. */
  async program(): Promise<string> {
    this.#directory ??= compile()
    return join(await this.#directory, 'conformance', 'gateway-process.js')
  }

  async remove(): Promise<void> {
    if (this.#directory) await rm(await this.#directory, { recursive: true })
  }
}

async function compile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'aetheel-build-'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await symlink(join(project, 'node_modules'), join(directory, 'node_modules'))
  const compiler = join(project, 'node_modules', '.bin', 'tsc')
  await promisify(execFile)(compiler, ['-p', project, '--noEmit', 'false', '--noCheck', '--outDir', directory])
  return directory
}
