import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import type { Place } from '../../src/channels/types.js'
import { ConfiguredAgents } from '../../src/runtime/configured-agents.js'
import { agentPath } from '../kit/agents.js'
import { livingProcesses } from '../kit/living-processes.js'
import { type RunningGateway, Stage } from '../kit/stage.js'
import { seeRun } from '../kit/seen-run.js'

const WARM_AGENT = agentPath('warm-agent.sh')
const SESSION = '0a1b2c3d-0000-4000-8000-000000000001'
const ALONE = 'alone'

/** What the agent answers: the warm process that answered, or that it was one-shot. */
const WHO = `
if [ "$WARM" ]; then who=$PPID; else who=${ALONE}; fi
printf '{"type":"system","subtype":"init","session_id":"${SESSION}"}\\n'
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"${SESSION}"}\\n' "$who"`

async function ask({ channel }: RunningGateway, place: string | Place = 'a'): Promise<string> {
  const count = channel.replies.length
  await channel.say(place, WHO)
  await expect.poll(() => channel.replies.length).toBe(count + 1)
  return channel.texts().at(-1) ?? ''
}

async function askTwice(running: RunningGateway, place?: string | Place): Promise<string[]> {
  return [await ask(running, place), await ask(running, place)]
}

function asOld(stage: Stage): string {
  const program = readFileSync(WARM_AGENT, 'utf8').replaceAll('99.1.2', '2.1.100')
  return stage.executable('old-warm-agent', program.replace(/"\$\{0.*?"/, WARM_AGENT.replace(/sh$/, 'mjs')))
}

it.each(['auto', 'live'])('with %s, the turns of a conversation share one process', async (mode) => {
  const stage = new Stage(onTestFinished)
  const running = await stage.start({ BACKEND_CLI_PATH: WARM_AGENT, AGENT_MODE: mode })
  const [first, second] = await askTwice(running)
  expect([first === second, first === ALONE]).toEqual([true, false])
  await running.stop()
  expect(livingProcesses(stage.directory)).toEqual([])
})

it('with oneshot, or auto and a version not known to support warm turns, each turn has its own process', async () => {
  const stage = new Stage(onTestFinished)
  const oneShot = await stage.start({ BACKEND_CLI_PATH: WARM_AGENT, AGENT_MODE: 'oneshot' })
  expect(await askTwice(oneShot)).toEqual([ALONE, ALONE])
  await oneShot.stop()
  const old = await stage.start({ BACKEND_CLI_PATH: asOld(stage), AGENT_MODE: 'auto' })
  expect(await askTwice(old, 'b')).toEqual([ALONE, ALONE])
})

it('a project may have its own mode', async () => {
  const stage = new Stage(onTestFinished)
  const projects = {
    swift: { directory: stage.makeDirectory('swift'), agentMode: 'live' },
    plain: { directory: stage.makeDirectory('plain') },
  }
  const running = await stage.start({ BACKEND_CLI_PATH: WARM_AGENT, AGENT_MODE: 'oneshot' }, { projects })
  const swift = await askTwice(running, { address: 'a', projectId: 'swift' })
  const plain = await askTwice(running, { address: 'b', projectId: 'plain' })
  expect([swift[0] === swift[1], swift.includes(ALONE), plain]).toEqual([true, false, [ALONE, ALONE]])
})

it('the mode may change while the gateway runs, which ends warm agents', async () => {
  const stage = new Stage(onTestFinished)
  const variables = { BACKEND_CLI_PATH: WARM_AGENT }
  const running = await stage.start({ ...variables, AGENT_MODE: 'live' })
  const warmPids = (): string[] =>
    livingProcesses(stage.directory).flatMap(({ pid, command }) =>
      command.includes('warm-agent.mjs') ? [String(pid)] : [],
    )
  expect([await ask(running)]).toEqual(warmPids())
  const change = (AGENT_MODE: string) => running.gateway.reconfigure(stage.config({ ...variables, AGENT_MODE }))
  expect(await change('oneshot')).toEqual({ changed: ['agentMode'], waiting: [] })
  await expect.poll(() => warmPids()).toEqual([])
  expect(await ask(running)).toBe(ALONE)
  await change('live')
  expect([await ask(running)]).toEqual(warmPids())
})

it.each([
  ['auto', WARM_AGENT, { mode: 'live' }],
  ['live', 'old', { mode: 'live' }],
  ['oneshot', WARM_AGENT, { mode: 'oneshot' }],
  [
    'auto',
    'old',
    { mode: 'oneshot', whyNotLive: 'Each turn starts a new process: version 2.1.100 is older than 2.1.197.' },
  ],
  ['auto', '/usr/bin/true', { mode: 'oneshot', whyNotLive: expect.stringContaining('its version is unknown') }],
  ['auto', '/nowhere', {}],
])('an agent reports its mode with %s and %s', async (mode, cliPath, expected) => {
  const stage = new Stage(onTestFinished)
  const BACKEND_CLI_PATH = cliPath === 'old' ? asOld(stage) : cliPath
  const config = stage.config({ BACKEND_CLI_PATH, AGENT_MODE: mode })
  const agents = new ConfiguredAgents(config, { environment: stage.environment, log: stage.log })
  const { mode: used, whyNotLive } = await agents.open('claude').probe()
  await agents.stop()
  expect({ ...(used && { mode: used }), ...(whyNotLive && { whyNotLive }) }).toEqual(expected)
})

it.each([
  ['live', '0.1.0', true],
  ['auto', '99.0.0', true],
  ['auto', '0.1.0', false],
  ['oneshot', '99.0.0', false],
])('Codex with %s and the version %s says whether it streams: %s', async (mode, version, streams) => {
  const stage = new Stage(onTestFinished)
  const BACKEND_CLI_PATH = stage.executable('codex', `#!/bin/sh\necho ${version}\n`)
  const config = stage.config({ AGENT_BACKEND: 'codex', BACKEND_CLI_PATH, AGENT_MODE: mode })
  const agents = new ConfiguredAgents(config, { environment: stage.environment, log: stage.log })
  onTestFinished(() => agents.stop())
  const agent = agents.open('codex')
  await agent.probe()
  expect(agent.capabilities().supportsStreaming).toBe(streams)
})

it('an agent that never listens is reported as one-shot for now', async () => {
  const stage = new Stage(onTestFinished)
  const program = `#!/bin/sh\ncase " $* " in *' --input-format '*) exit 1 ;; esac\nexec ${WARM_AGENT} "$@"\n`
  const config = stage.config({ BACKEND_CLI_PATH: stage.executable('deaf', program), AGENT_MODE: 'live' })
  // While it is idle.
  const now = () => 0
  const agents = new ConfiguredAgents(config, { environment: stage.environment, log: stage.log, now })
  onTestFinished(() => agents.stop())
  const agent = agents.open('claude')
  const { result } = await seeRun(agent.run({ prompt: WHO }, new AbortController().signal))
  expect([result.finalOutput, await agent.probe()]).toEqual([
    ALONE,
    expect.objectContaining({
      mode: 'oneshot',
      whyNotLive: expect.stringContaining('did not become ready'),
    }),
  ])
})
