// The pipelines of the built-in templates. Their commands run here in a fresh project if the tool is installed: with
// Node.js always, with Python and Go if they are. Otherwise the file is only read.

import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { findExecutable } from '../../src/core/paths.js'
import { startPackageRegistry } from './package-registry.js'
import { setup } from './stage.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

const NAMES = ['empty', 'go', 'node-typescript', 'python'] as const
const TOOLS = { empty: 'sh', go: 'go', 'node-typescript': 'npm', python: 'python3' }

// The part of Woodpecker 3's "Workflow syntax" that is used here; anything else would be a mistake.
const oneOrMore = <T extends z.ZodType>(schema: T) => z.union([schema, z.array(schema).min(1)])
const event = z.enum([
  ...(['push', 'pull_request', 'pull_request_closed', 'tag', 'release'] as const),
  ...(['deployment', 'cron', 'manual'] as const),
])
const conditions = oneOrMore(
  z.strictObject({ event: oneOrMore(event), branch: oneOrMore(z.string().min(1)).exactOptional() }),
)
const step = z.strictObject({
  name: z.string().min(1),
  image: z.string().regex(/^[a-z0-9./-]+:[\w.-]+$/),
  commands: z.array(z.string().min(1)).min(1),
  when: conditions.exactOptional(),
})
const workflow = z.strictObject({ when: conditions, steps: z.array(step).min(1) })

describe.each(NAMES)('the pipeline of %s', (name) => {
  it('is a workflow of Woodpecker', async () => {
    const { pipeline } = await generate(name)
    expect(workflow.safeParse(pipeline).error?.issues).toBeUndefined()
  })

  it.skipIf(!isInstalled(TOOLS[name]))('passes in a fresh project', async () => {
    const { directory, pipeline } = await generate(name)
    await expect(runSteps(directory, workflow.parse(pipeline))).resolves.toBeUndefined()
  })
})

it('fails when the code is wrong', async () => {
  const { directory, pipeline } = await generate('empty')
  const { steps } = workflow.parse(pipeline)
  mkdirSync(join(directory, 'elsewhere'))
  await promisify(execFile)('mv', ['README.md', 'elsewhere'], { cwd: directory })
  await expect(runSteps(directory, { steps })).rejects.toMatchObject({
    code: 1,
    stderr: 'README.md is missing or empty\n',
  })
})

async function generate(name: string): Promise<{ directory: string; pipeline: unknown }> {
  const { projects } = await setup()
  const { directory } = await projects.create({ name: `Fresh "${name}" \`x\``, template: { name } })
  return { directory, pipeline: parse(readFileSync(join(directory, '.woodpecker.yml'), 'utf8')) }
}

/** As Woodpecker does: each step in its own shell, which exits at the first failure. */
async function runSteps(directory: string, { steps }: Pick<z.output<typeof workflow>, 'steps'>): Promise<void> {
  const home = temporaryDirectory()
  const environment = {
    PATH: process.env['PATH'],
    HOME: home,
    CI: 'woodpecker',
    npm_config_registry: await startPackageRegistry(),
    GOFLAGS: '-mod=mod',
    GOTOOLCHAIN: 'local',
  }
  for (const { commands } of steps) {
    await promisify(execFile)('sh', ['-e', '-c', commands.join('\n')], { cwd: directory, env: environment })
  }
}

function isInstalled(command: string): boolean {
  return findExecutable(command, process.env['PATH'] ?? '') !== undefined
}
