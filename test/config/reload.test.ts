import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config.js'
import { applyConfig, watchConfig } from '../../src/config/reload.js'
import { GatewayError } from '../../src/errors.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describe('applyConfig', () => {
  it('applies what each message reads, and names what waits for the next start', () => {
    const live = configOf({ queryTimeoutMs: 1000, inbound: { reply: { agent: { kind: 'claude' } } }, httpPort: 1 })
    const next = configOf({ queryTimeoutMs: 2000, httpPort: 2 })
    const change = applyConfig(live, next)
    expect([change, live.queryTimeoutMs, 'inbound' in live, live.httpPort]).toEqual([
      { changed: ['queryTimeoutMs', 'inbound'], waiting: ['httpPort'] },
      2000,
      false,
      1,
    ])
  })

  it('takes over projects in pods and where pods are, but not kubectl', () => {
    const pods = (namespace: string) => ({
      kubernetesNamespace: namespace,
      projects: { web: { pod: { name: 'web-0' } } },
    })
    const live = configOf({ ...pods('old'), kubectlPath: 'kubectl' })
    const change = applyConfig(live, configOf({ ...pods('new'), kubectlPath: 'other' }))
    expect([change, live.projects.map(({ pod }) => pod)]).toEqual([
      { changed: ['projects', 'kubernetesNamespace'], waiting: ['kubectlPath'] },
      [{ namespace: 'new', name: 'web-0' }],
    ])
  })

  it('finds nothing in a configuration that says the same', () => {
    const settings = { hooks: [{ on: 'error', url: 'https://hooks.example/x' }] }
    expect(applyConfig(configOf(settings), configOf(settings))).toEqual({ changed: [], waiting: [] })
  })
})

describe('watchConfig', () => {
  it('reports a change, a mistake, and a file that disappears and comes back, each once', async () => {
    const file = fileOf({ backendMaxTurns: 1 })
    const told: string[] = []
    const stop = watchConfig({
      file,
      load: async () => loadConfig({ HOME: '/home/ada' }, file),
      onChange: async ({ backendMaxTurns }) => void told.push(`changed ${backendMaxTurns}`),
      onProblem: (problem) => told.push(problem.replaceAll(file, 'FILE')),
    })
    onTestFinished(stop)
    const steps: Array<[() => void, string]> = [
      [() => {}, 'changed 1'],
      [() => writeFileSync(file, '{ backendMaxTurns: 2 }'), 'changed 2'],
      [
        () => writeFileSync(file, '{ backendMaxTurn: 3 }'),
        'FILE: backendMaxTurn: unknown key; did you mean "backendMaxTurns"?',
      ],
      [() => rmSync(file), 'FILE: does not exist; create it, or name another file with --config'],
      [
        () => {
          // As editors do.
          writeFileSync(`${file}.new`, '{ backendMaxTurns: 4 }')
          renameSync(`${file}.new`, file)
        },
        'changed 4',
      ],
    ]
    for (const [change, expected] of steps) {
      change()
      await expect.poll(() => told.at(-1)).toBe(expected)
    }
    expect(told).toEqual(steps.map(([, expected]) => expected))
  })
})

it('a change that fails for another reason is reported once, and applied when that is gone', async () => {
  const file = fileOf({ backendMaxTurns: 1 })
  const told: string[] = []
  let attempts = 0
  const stop = watchConfig({
    file,
    load: async () => loadConfig({ HOME: '/home/ada' }, file),
    onChange: async ({ backendMaxTurns }) => {
      attempts += 1
      if (attempts < 3) throw new GatewayError('store_unavailable', 'The database is away.')
      told.push(`changed ${backendMaxTurns}`)
    },
    onProblem: (problem) => told.push(problem),
  })
  onTestFinished(stop)
  await expect.poll(() => told).toEqual(['The database is away.', 'changed 1'])
})

function configOf(settings: object) {
  return loadConfig({ HOME: '/home/ada' }, fileOf(settings))
}

function fileOf(settings: object): string {
  const directory = temporaryDirectory()
  const file = join(directory, 'aetheel.json5')
  writeFileSync(file, JSON.stringify(settings))
  return file
}
