import type { AgentProbe, BackendName, Permissions } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { DEMO } from '../../core/demo-agent.js'
import { describeAbsence, howToLogIn, type ProbedAgent } from '../probed-agents.js'
import type { Choice, Prompts } from '../prompts.js'

type ChosenAgent = BackendName | typeof DEMO

interface AgentAnswers {
  agentBackend: ChosenAgent
  agentPermissions: Permissions
}

/** How ready an agent is. Agents are offered in this order. */
const READINESS = ['logged-in', 'unknown', 'logged-out', 'missing'] as const

/** The only agent that cannot ask for permission. */
const NEVER_ASKS: ChosenAgent = 'pi'

/** Finds every agent that a configuration describes. */
export type Probe = (config: GatewayConfig) => Promise<ProbedAgent[]>

/** Asks which agent answers, and whether it asks before it acts. */
export async function askForAgent(prompts: Prompts, config: GatewayConfig, probe: Probe): Promise<AgentAnswers> {
  const agents = await probe(withoutDemo(config))
  for (;;) {
    const agentBackend = await askForName(prompts, config, agents)
    const agentPermissions = await askForPermissions(prompts, agentBackend)
    if (agentPermissions !== undefined) return { agentBackend, agentPermissions }
  }
}

async function askForName(prompts: Prompts, config: GatewayConfig, agents: ProbedAgent[]): Promise<ChosenAgent> {
  const sorted = agents.toSorted(
    (a, b) => READINESS.indexOf(readinessOf(a.probe)) - READINESS.indexOf(readinessOf(b.probe)),
  )
  const installed = sorted.filter(({ probe }) => probe.isFound)
  const missing = sorted.filter(({ probe }) => !probe.isFound)
  const choices: Choice<ChosenAgent>[] = [
    ...installed.map(choiceOf),
    { value: DEMO, label: 'demo (built in, to look around without an account or a model)' },
    ...missing.map(choiceOf),
  ]
  const [first] = installed
  if (!first)
    prompts.warn('No agent is installed here yet. Try the built-in demo, or choose an agent and install it later.')
  const isAsGood = ({ probe }: ProbedAgent): boolean =>
    first !== undefined && readinessOf(probe) === readinessOf(first.probe)
  const preferred = installed.find((agent) => agent.backend.name() === config.agentBackend && isAsGood(agent))
  const initial = config.isDemoAgent ? undefined : (preferred ?? first)?.backend.name()
  const name = await prompts.select('Which agent should answer?', choices, initial ?? DEMO)
  const probe = agents.find(({ backend }) => backend.name() === name)?.probe
  for (const problem of probe?.problems ?? []) prompts.warn(problem)
  if (probe?.login?.state === 'logged-out') {
    prompts.warn(`It is not logged in and cannot answer yet. Log in, now or later: ${howToLogIn(probe.login)}`)
  }
  return name
}

/** Undefined to choose another agent. */
async function askForPermissions(prompts: Prompts, agent: ChosenAgent): Promise<Permissions | undefined> {
  const allow = {
    value: 'allow',
    label: 'Allow everything: it can change and run anything that you can, without asking',
  } as const
  const question = 'What may the agent do?'
  if (agent === NEVER_ASKS) {
    prompts.warn('Pi cannot ask for permission.')
    const choice = await prompts.select(question, [allow, { value: 'back', label: 'Choose another agent' }])
    return choice === 'back' ? undefined : choice
  }
  return prompts.select<Permissions>(question, [
    { value: 'ask', label: 'Ask before commands and edits: you allow or deny each one where you talk to it' },
    allow,
  ])
}

/** The same configuration with the agent that the demo agent replaces. */
function withoutDemo(config: GatewayConfig): GatewayConfig {
  return config.isDemoAgent ? { ...config, backendCliPath: config.agentBackend } : config
}

function choiceOf({ backend, probe }: ProbedAgent): Choice<ChosenAgent> {
  const version = probe.isFound ? (probe.version ?? 'version unknown') : describeAbsence(probe)
  const login = readinessOf(probe) === 'logged-out' ? ', not logged in' : ''
  return { value: backend.name(), label: `${backend.name()} (${version}${login})` }
}

function readinessOf({ isFound, login }: AgentProbe): (typeof READINESS)[number] {
  return isFound ? (login?.state ?? 'unknown') : 'missing'
}
