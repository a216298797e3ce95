import { startDeadline } from '../../core/async.js'
import { findBackendName } from '../../backends/agents.js'
import type { BackendName } from '../../backends/types.js'
import type { GatewayConfig } from '../../config.js'
import { messageOf } from '../../errors.js'
import { describePod, type PodAddress, PodError, type Pods } from '../../kubernetes/types.js'
import { chooseAgent } from '../../runtime/agent-choice.js'
import type { Project, ProjectRecord } from '../../store/projects.js'
import { bad, doubtful, type DoctorReport, type Finding, good, renderFindings } from './findings.js'

const TIMEOUT_MS = 20_000

/** The part of `aetheel doctor` about projects in pods. Contract: never rejects, and changes nothing. */
export async function podsReport(
  config: Pick<GatewayConfig, 'projects' | 'agentBackend' | 'codeAgentDefault' | 'inbound'>,
  listProjects: () => Promise<ProjectRecord[]>,
  pods: Pick<Pods, 'open' | 'problems'>,
): Promise<DoctorReport> {
  const listed = await listProjects().catch((error: unknown) => messageOf(error))
  const unseen = typeof listed === 'string' ? [doubtful('the projects in the database cannot be read', listed)] : []
  // The current file counts, even if no gateway has read it yet.
  const made = (typeof listed === 'string' ? [] : listed).filter(
    ({ id, source }) => source !== 'file' && !config.projects.some((one) => one.id === id),
  )
  const inPods = [...config.projects, ...made].flatMap((project) =>
    project.pod ? [{ ...project, pod: project.pod }] : [],
  )
  if (inPods.length === 0 && unseen.length === 0) {
    return { text: '- Kubernetes: no project is in a pod; see docs/kubernetes.md', isHealthy: true }
  }
  const [problems, found] = await Promise.all([
    inPods.length === 0 ? [] : pods.problems(),
    Promise.all(inPods.map((project) => checkPod(project, agentOf(project, config), pods))),
  ])
  const doubts = problems.map((text): Finding => ({ mark: '!', text, details: [] }))
  return renderFindings('Kubernetes', [...unseen, ...doubts, ...found])
}

/** The agent that answers: the default if the project's agent is unknown. */
function agentOf(project: Project, config: Parameters<typeof podsReport>[0]): BackendName {
  const { backend } = chooseAgent({}, project, config)
  return findBackendName(backend) ?? config.codeAgentDefault
}

async function checkPod(
  { id, pod: address, directory }: Pick<Project, 'id' | 'directory'> & { pod: PodAddress },
  agent: BackendName,
  pods: Pick<Pods, 'open'>,
): Promise<Finding> {
  const { signal, clear } = startDeadline(TIMEOUT_MS)
  try {
    const pod = await pods.open(address, signal)
    const version = await pod.version(agent, signal)
    const where = describePod(pod.address)
    if (version !== undefined) return good(`${id}: ${agent} ${firstLine(version)} in ${where}, works in ${directory}`)
    const advice = `Install ${agent} in its image, or choose another agent for the project.`
    return bad(`${id}: ${agent} cannot be started in ${where}`, advice)
  } catch (error) {
    if (error instanceof PodError) return { mark: '✗', text: `${id}: ${error.message}`, details: [] }
    return bad(`${id}: ${describePod(address)} cannot be checked`, messageOf(error))
  } finally {
    clear()
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? ''
}
