import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config.js'
import { ECHO_AGENT } from '../kit/agents.js'
import { Stage } from '../kit/stage.js'

describe('a gateway whose configuration changes', () => {
  it('uses it for the next message', async () => {
    const stage = new Stage(onTestFinished)
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: agentThatSays(stage, 'first') })
    await channel.say('a', 'hello')
    await expect.poll(() => channel.texts()).toEqual(['first'])
    const change = await gateway.reconfigure(stage.config({ BACKEND_CLI_PATH: agentThatSays(stage, 'second') }))
    await channel.say('a', 'hello again')
    await expect.poll(() => channel.texts()).toEqual(['first', 'second'])
    expect(change).toEqual({ changed: ['backendCliPath'], waiting: [] })
  })

  it('lets a running turn continue as it began', async () => {
    const stage = new Stage(onTestFinished)
    const slow = agentThatSays(stage, 'slow', `while (!existsSync('go')) await new Promise((r) => setTimeout(r, 10))`)
    const { gateway, channel, steps } = await stage.start({ BACKEND_CLI_PATH: slow })
    await channel.say('a', 'hello')
    await expect.poll(() => steps).toContain('claimed')
    await gateway.reconfigure(stage.config({ BACKEND_CLI_PATH: agentThatSays(stage, 'other'), QUERY_TIMEOUT_MS: '1' }))
    writeFileSync(join(stage.workingDir, 'go'), '')
    await expect.poll(() => channel.texts()).toEqual(['slow'])
  })

  it('runs hooks in the new directory', async () => {
    const stage = new Stage(onTestFinished)
    const hooks = [{ on: 'message-received', command: ['touch', 'hooked'] }]
    const { gateway, channel } = await stage.start({}, { hooks })
    const WORKING_DIR = stage.makeDirectory('other')
    await gateway.reconfigure(stage.config({ WORKING_DIR }, { hooks }))
    await channel.say('a', 'hello')
    await expect.poll(() => existsSync(join(WORKING_DIR, 'hooked'))).toBe(true)
  })

  it('creates and removes the projects of its file', async () => {
    const stage = new Stage(onTestFinished)
    const project = { directory: stage.makeDirectory('site') }
    const { gateway } = await stage.start({}, { projects: { old: project } })
    const { changed } = await gateway.reconfigure(stage.config({}, { projects: { fresh: project } }))
    const ids = (await gateway.store.projects.list()).map(({ id }) => id)
    expect([changed, ids]).toEqual([['projects'], ['fresh']])
  })

  it('changes nothing if the store is unavailable', async () => {
    const stage = new Stage(onTestFinished)
    const project = { directory: stage.makeDirectory('site') }
    const { gateway, config } = await stage.start()
    gateway.store.projects.put = () => Promise.reject(new Error('away'))
    const next = stage.config({ QUERY_TIMEOUT_MS: '1234' }, { projects: { fresh: project } })
    await expect(gateway.reconfigure(next)).rejects.toThrow('away')
    expect([config.projects, config.queryTimeoutMs === 1234]).toEqual([[], false])
  })

  it('loses no message and answers none twice while it changes again and again', async () => {
    const stage = new Stage(onTestFinished)
    const agent = join(stage.bin, 'echo')
    writeFileSync(agent, ECHO_AGENT, { mode: 0o755 })
    const { gateway, channel } = await stage.start({ BACKEND_CLI_PATH: agent })
    const sent: string[] = []
    for (let round = 0; round < 20; round += 1) {
      const text = `message ${round}`
      sent.push(text)
      const next = stage.config({ BACKEND_CLI_PATH: agent, QUERY_TIMEOUT_MS: String(60_000 + round) })
      const broken = (): unknown => loadConfig({ ...stage.variables, LEASE_MS: 'never' })
      expect(broken).toThrow('LEASE_MS')
      await Promise.all([channel.say(`place ${round % 3}`, text), gateway.reconfigure(next)])
    }
    await expect.poll(() => channel.texts().length).toBeGreaterThanOrEqual(sent.length)
    expect(channel.texts().toSorted()).toEqual(sent.toSorted())
  })
})

function agentThatSays(stage: Stage, answer: string, before = ''): string {
  const path = join(stage.bin, `says-${answer}`)
  const line = JSON.stringify({ type: 'result', subtype: 'success', is_error: false, session_id: 's1', result: answer })
  const script = `#!/usr/bin/env node\nimport { existsSync } from 'node:fs'\n${before}\nconsole.log(${JSON.stringify(line)})\n`
  writeFileSync(path, script, { mode: 0o755 })
  return path
}
