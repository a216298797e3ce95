import type { AgentProbe, BackendName, Permissions } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { DEMO } from '../../config/values.js'
import { describeAbsence, type ProbedAgent } from '../probed-agents.js'
import type { Choice, Prompts } from '../prompts.js'

export type ChosenAgent = BackendName | typeof DEMO

export interface AgentAnswers {
  agentBackend: ChosenAgent
  agentPermissions: Permissions
}

/** How well an agent can be used, and so which one is offered first. */
type Readiness = 'ready' | 'found' | 'missing'

const ORDER: Readiness[] = ['ready', 'found', 'missing']

/** The only one that has no way to ask for permission. */
const NEVER_ASKS: ChosenAgent = 'pi'

/** Asks which agent answers, and whether it asks before it acts. */
export async function askForAgent(
  prompts: Prompts,
  config: GatewayConfig,
  agents: ProbedAgent[],
): Promise<AgentAnswers> {
  for (;;) {
    const agentBackend = await askForName(prompts, config, agents)
    const agentPermissions = await askForPermissions(prompts, agentBackend)
    if (agentPermissions !== undefined) return { agentBackend, agentPermissions }
  }
}

async function askForName(prompts: Prompts, config: GatewayConfig, agents: ProbedAgent[]): Promise<ChosenAgent> {
  const sorted = agents.toSorted((a, b) => ORDER.indexOf(readinessOf(a.probe)) - ORDER.indexOf(readinessOf(b.probe)))
  const [installed, missing] = [true, false].map((isFound) => sorted.filter(({ probe }) => probe.isFound === isFound))
  const choices: Choice<ChosenAgent>[] = [
    ...(installed ?? []).map(choiceOf),
    { value: DEMO, label: 'demo (built in: no account, and no model)', hint: 'to look around' },
    ...(missing ?? []).map(choiceOf),
  ]
  if (installed?.length === 0) {
    prompts.warn('No agent is installed here yet. Try the built-in one, or choose one and install it later.')
  }
  const first = sorted.find(({ probe }) => readinessOf(probe) === 'ready') ?? installed?.[0]
  const preferred = installed?.find(({ backend }) => backend.name() === config.agentBackend)
  const isPreferred = preferred && first && readinessOf(preferred.probe) === readinessOf(first.probe)
  const initial = (isPreferred ? preferred : first)?.backend.name() ?? DEMO
  const name = await prompts.select('Which agent shall answer?', choices, initial)
  const problems = agents.find(({ backend }) => backend.name() === name)?.probe.problems ?? []
  for (const problem of problems) prompts.warn(problem)
  return name
}

/** Undefined to choose another agent. */
async function askForPermissions(prompts: Prompts, agent: ChosenAgent): Promise<Permissions | undefined> {
  const allow = {
    value: 'allow',
    label: 'Allow everything: it changes and runs, unasked, what you may',
  } as const
  const question = 'What may the agent do?'
  if (agent === NEVER_ASKS) {
    prompts.warn('Pi has no way to ask for permission.')
    const choice = await prompts.select(question, [allow, { value: 'back', label: 'Choose another agent' }])
    return choice === 'back' ? undefined : choice
  }
  return prompts.select<Permissions>(question, [
    { value: 'ask', label: 'Ask before commands and edits: you allow or refuse each, where you talk to it' },
    allow,
  ])
}

function choiceOf({ backend, probe }: ProbedAgent): Choice<ChosenAgent> {
  const version = probe.isFound ? (probe.version ?? 'version unknown') : describeAbsence(probe)
  const login = readinessOf(probe) === 'found' ? ', not logged in' : ''
  return { value: backend.name(), label: `${backend.name()} (${version}${login})` }
}

/** The one place that judges a probe. */
function readinessOf(probe: AgentProbe & { login?: { state?: string } }): Readiness {
  if (!probe.isFound) return 'missing'
  return probe.login?.state === 'logged-out' ? 'found' : 'ready'
}
