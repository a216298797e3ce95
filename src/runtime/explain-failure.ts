import type { AgentFailure, FailureReason } from '../backends/types.js'
import type { PodProblem } from '../kubernetes/types.js'
import { duration, isSoon, timeAhead, timeOfDay } from './time-words.js'

const LOG_IN: Partial<Record<string, string>> = {
  claude: 'run "claude auth login" there, or set ANTHROPIC_API_KEY for the gateway',
  codex: 'run "codex login" there, or set CODEX_API_KEY and AGENT_MODE=oneshot for the gateway',
  gemini: 'run "aetheel credentials set GEMINI_API_KEY" there, or set GEMINI_API_KEY for the gateway',
  opencode: 'run "opencode auth login" there, or set the key of its model provider for the gateway',
  pi: 'run "pi" there and type /login, or set the key of its model provider for the gateway',
}

const TRY_AGAIN = 'try it again'
const WORK_STAYS = 'What it had done by then stays done.'

/** How a message was worked on until it failed. */
export interface Attempts {
  /** Refusals before any agent has run are our own and complete. */
  hasRun: boolean
  attempts: number
  /** Of all attempts together. */
  workedMs: number
}

type Explanation = (failure: AgentFailure, agent: string, now: number, tried: Attempts) => string

const EXPLANATIONS: Record<FailureReason, Explanation> = {
  auth: (_, agent) => {
    const logIn = (Object.hasOwn(LOG_IN, agent) && LOG_IN[agent]) || 'log in as its documentation says'
    const problem = `${agent} is not logged in where the gateway runs, or its key was refused.`
    return `${problem} Who runs the gateway can put that right: ${logIn}. Then ${TRY_AGAIN}.`
  },
  rate_limit: explainLimit,
  model_unknown: (_, agent) => {
    const advice = "Choose another with /model, or the agent's own with /model default."
    return `${agent} does not know its model, or may not use it. ${advice}`
  },
  prompt_too_long: (_, agent) => {
    const advice = '/new begins a fresh session, which knows nothing from before; or send less at once.'
    return `This conversation is longer than the model of ${agent} can take. ${advice}`
  },
  timeout: explainTimeout,
  max_turns: (failure, agent) => `${agent} was stopped. ${pauseNote(failure)}`,
  refused: (_, agent) => {
    const advice = 'Say it in another way, begin a fresh session with /new, or choose another model or agent'
    return `${agent}, or the model behind it, refused this. ${advice} with /model or /backend.`
  },
  spawn: (_, agent) => {
    const advice = `"aetheel doctor --agent ${agent}" there says what is missing and how to install it.`
    return `${agent} could not be started where the gateway runs. ${advice} Then ${TRY_AGAIN}.`
  },
  exit: (_, agent) => {
    const advice = '/new begins a fresh session, and "aetheel runs" where the gateway runs shows what happened.'
    return `${agent} has failed. Look what is done already, then ${TRY_AGAIN}. If it fails again, ${advice}`
  },
  no_result: (_, agent) => {
    return `${agent} was gone before its answer was complete. Look what is done already, then ${TRY_AGAIN}.`
  },
  session_lost: (_, agent) => {
    const advice = 'Your next message begins a fresh one, which knows nothing from before.'
    return `${agent} no longer has the session of this conversation. ${advice}`
  },
  cancelled: (_, agent) => {
    const advice = `To have it finished after all, ${TRY_AGAIN}.`
    return `${agent} was stopped before it had finished. ${WORK_STAYS} ${advice}`
  },
}

/** What is wrong with the agent's pod. The failure's own message says what to do. */
const POD_PROBLEMS: Record<PodProblem, (agent: string) => string> = {
  pod_not_found: () => 'The pod of this project is not there.',
  pod_not_running: () => 'The pod of this project is not ready for work.',
  pod_gone: (agent) =>
    `The pod of this project went away while ${agent} worked. What was not saved elsewhere may be lost.`,
  container_not_found: () => 'The pod of this project has no such container.',
  cli_missing: (agent) => `${agent} cannot be started in the image of the pod of this project.`,
  directory_missing: () => 'The directory of this project is not in its pod, or cannot be used there.',
  forbidden: () => 'The cluster does not let the gateway work in the pod of this project.',
  unreachable: () => 'The cluster of this project does not answer, or kubectl cannot be used where the gateway runs.',
  stream_lost: (agent) => `The connection to the pod of this project was lost while ${agent} worked. ${WORK_STAYS}`,
}

const ONCE: Attempts = { hasRun: true, attempts: 1, workedMs: 0 }

/** What a person reads when a message has failed: what happened, what to do, and the agent's own words. */
export function explainFailure(failure: AgentFailure, agent: string, now: number, tried = ONCE): string {
  if (failure.reason === 'refused' && !tried.hasRun) return failure.message
  const { reason, podProblem } = failure
  const words = ownWords(failure)
  const explanation = podProblem ? POD_PROBLEMS[podProblem](agent) : EXPLANATIONS[reason](failure, agent, now, tried)
  return words === '' ? explanation : `${explanation}\n\n${words}`
}

function explainLimit({ retryAt = 0 }: AgentFailure, agent: string, now: number): string {
  const [until, after] =
    retryAt <= now
      ? ['', 'later']
      : isSoon(retryAt, now)
        ? ['', timeAhead(retryAt, now)]
        : [` until ${timeOfDay(retryAt, now)}`, 'after that']
  return `The limit of ${agent} is reached${until}. Try it again ${after}, or choose another agent with /backend.`
}

/** What a person reads below what the agent said until it had used up its turns. */
export function pauseNote({ message }: Pick<AgentFailure, 'message'>, maxTurns?: number, canContinue = false): string {
  // The operator's own arguments may set another limit, which the agent names.
  const limit = /\((\d+)\)/.exec(message)?.[1] ?? maxTurns
  const steps = limit === undefined ? '' : ` after ${limit} ${Number(limit) === 1 ? 'step' : 'steps'}`
  const word = canContinue ? 'Paused' : 'Stopped'
  return `${word}${steps}, the limit of one message.${canContinue ? ' /continue goes on.' : ''}`
}

/** Only the wording of `watchTurn` tells which of the two limits it was. */
function explainTimeout({ message }: AgentFailure, agent: string, _: number, { attempts, workedMs }: Attempts): string {
  const all = attempts > 1 ? `${duration(workedMs)} in ${attempts} attempts` : undefined
  const [, silence] = /printed nothing for ([\d.]+) s/.exec(message) ?? []
  if (silence !== undefined) {
    const limit = `${duration(Number(silence) * 1000)} and was stopped${all === undefined ? '' : `, after ${all}`}`
    return `${agent} gave no sign of life for ${limit}. ${WORK_STAYS} To try once more, ${TRY_AGAIN}; if its work needs such pauses, have IDLE_TIMEOUT_MS raised.`
  }
  const [, total] = /finish within ([\d.]+) s/.exec(message) ?? []
  if (total === undefined) return `${agent} took too long and was stopped. ${WORK_STAYS} Ask for a smaller step.`
  const worked = all ? `${all} without finishing` : `${duration(Number(total) * 1000)}, the limit of one turn`
  return `${agent} worked for ${worked}, and was stopped. ${WORK_STAYS} Ask for a smaller step, or have QUERY_TIMEOUT_MS raised.`
}

const MAX_CHARACTERS = 500

/** As one block: without empty lines, and of readable length. */
function ownWords({ reason, message, podProblem }: AgentFailure): string {
  // These are our own words and already said.
  if (!podProblem && (reason === 'timeout' || reason === 'cancelled')) return ''
  const text = message
    .slice(0, MAX_CHARACTERS * 4)
    .split(/[\r\n]+/)
    .map((line) => line.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim())
    .filter((line) => line !== '')
    .join('\n')
  if (text === '') return ''
  // Do not cut a surrogate pair.
  const cut = `${text.slice(0, MAX_CHARACTERS - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
  return `${podProblem || reason === 'spawn' ? 'The reason' : 'It said'}: ${text.length <= MAX_CHARACTERS ? text : cut}`
}
