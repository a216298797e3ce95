import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    buildDirectory: string
  }
}

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))

const execute = promisify(execFile)

/** The programs that tests start, each bundled into a few files beside `chunks`. */
const ENTRIES = [
  'src/main.js',
  'src/processes/sweep.js',
  ...['channels/discord', 'channels/whatsapp', 'crash', 'store'].map((folder) => `test/${folder}/gateway-process.js`),
  'test/kubernetes/run-holder.js',
]

/** For the packages in it that are CommonJS. */
const REQUIRE = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`

/** One build for the whole test run: as TypeScript, or unbundled, each of the many processes would take far longer
 *  to start. */
export default async function setUpBuild(project: TestProject): Promise<() => void> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-build-')))
  cpSync(join(PROJECT, 'package.json'), join(directory, 'package.json'))
  for (const name of ['node_modules', 'demo', 'templates']) symlinkSync(join(PROJECT, name), join(directory, name))
  await Promise.all([buildEntries(directory), buildDashboard(join(directory, 'dist', 'web'))])
  project.provide('buildDirectory', directory)
  return () => rmSync(directory, { recursive: true })
}

async function buildEntries(directory: string): Promise<void> {
  await execute(program('tsc'), ['-p', PROJECT, '--noEmit', 'false', '--noCheck', '--outDir', directory])
  keepPlaces(join(directory, 'src'))
  const form = ['--bundle', '--splitting', '--platform=node', '--format=esm', `--banner:js=${REQUIRE}`]
  const places = [`--outdir=${directory}`, `--outbase=${directory}`, '--chunk-names=chunks/[hash]', '--allow-overwrite']
  // It comes with tsx. Native modules stay where they are.
  const options = [...form, ...places, '--external:libsql', '--log-level=error']
  await execute(program('esbuild'), [...ENTRIES, ...options], { cwd: directory })
}

/** A module that looks for files beside itself finds them, whichever bundle it ends up in. */
function keepPlaces(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || !path.endsWith('.js')) continue
    const code = readFileSync(path, 'utf8')
    if (!code.includes('import.meta.url')) continue
    writeFileSync(path, code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)))
  }
}

async function buildDashboard(directory: string): Promise<void> {
  const options = ['build', join(PROJECT, 'web'), '--outDir', directory, '--logLevel', 'warn']
  await execute(program('vite'), options, { env: { PATH: process.env['PATH'], NODE_ENV: 'production' } })
}

function program(name: string): string {
  return join(PROJECT, 'node_modules', '.bin', name)
}
