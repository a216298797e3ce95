import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    buildDirectory: string
  }
}

const PROJECT = fileURLToPath(new URL('..', import.meta.url))

const execute = promisify(execFile)

/** One build for the whole test run: read as TypeScript, each of the many processes would need a second to start. */
export default async function setUpBuild(project: TestProject): Promise<() => void> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'aetheel-build-')))
  const kysely = join(directory, 'src', 'node_modules', 'kysely')
  await Promise.all([compile(directory), bundleKysely(kysely), buildDashboard(join(directory, 'dist', 'web'))])
  cpSync(join(PROJECT, 'package.json'), join(directory, 'package.json'))
  for (const name of ['node_modules', 'demo', 'templates']) symlinkSync(join(PROJECT, name), join(directory, name))
  project.provide('buildDirectory', directory)
  return () => rmSync(directory, { recursive: true })
}

async function compile(directory: string): Promise<void> {
  await execute(program('tsc'), ['-p', PROJECT, '--noEmit', 'false', '--noCheck', '--outDir', directory])
}

async function buildDashboard(directory: string): Promise<void> {
  const options = ['build', join(PROJECT, 'web'), '--outDir', directory, '--logLevel', 'warn']
  await execute(program('vite'), options, { env: { PATH: process.env['PATH'], NODE_ENV: 'production' } })
}

/** Its 260 files in one, where the compiled sources find it first: they are a third of what each process needs to start. */
async function bundleKysely(directory: string): Promise<void> {
  const options = ['--bundle', '--platform=node', '--format=esm', `--outfile=${join(directory, 'index.js')}`]
  // It comes with tsx.
  await execute(program('esbuild'), ['kysely', ...options, '--log-level=warning'], { cwd: PROJECT })
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ type: 'module', exports: './index.js' }))
}

function program(name: string): string {
  return join(PROJECT, 'node_modules', '.bin', name)
}
