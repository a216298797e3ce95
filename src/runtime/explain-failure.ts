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

const WORK_STAYS = 'Changes it already made are kept.'

/** The attempts at a message until it failed. */
export interface Attempts {
  /** Whether an agent has run: refusals before that are our own, and complete. */
  hasRun: boolean
  attempts: number
  /** For all attempts together. */
  workedMs: number
}

type Explanation = (failure: AgentFailure, agent: string, now: number, tried: Attempts) => string

const EXPLANATIONS: Record<FailureReason, Explanation> = {
  auth: (_, agent) => {
    const logIn = (Object.hasOwn(LOG_IN, agent) && LOG_IN[agent]) || 'log in as its documentation describes'
    const problem = `${agent} is not logged in where the gateway runs, or its key was rejected.`
    return `${problem} To fix this, ${logIn}. Then try again.`
  },
  rate_limit: explainLimit,
  model_unknown: (_, agent) => {
    const advice = 'Choose another with /model, or go back to the default with /model default.'
    return `${agent} does not know the model, or may not use it. ${advice}`
  },
  prompt_too_long: (_, agent) => {
    const advice = 'Start a fresh session with /new, which remembers nothing from before, or send less at once.'
    return `This conversation is too long for the model of ${agent}. ${advice}`
  },
  timeout: explainTimeout,
  max_turns: (failure, agent) => `${agent} was stopped. ${pauseNote(failure)}`,
  refused: (_, agent) => {
    const advice = 'Rephrase it, start a fresh session with /new, or choose another model or agent'
    return `${agent}, or the model behind it, refused this. ${advice} with /model or /backend.`
  },
  spawn: (_, agent) => {
    const advice = `Run "aetheel doctor --agent ${agent}" there to see what is missing and how to install it.`
    return `${agent} could not be started where the gateway runs. ${advice} Then try again.`
  },
  exit: (_, agent) => {
    const advice = 'start a fresh session with /new; "aetheel runs" where the gateway runs shows what happened.'
    return `${agent} failed. Check what it already did, then try again. If it fails again, ${advice}`
  },
  no_result: (_, agent) => {
    return `${agent} ended before its answer was complete. Check what it already did, then try again.`
  },
  session_lost: (_, agent) => {
    const advice = 'Your next message starts a fresh one, which remembers nothing from before.'
    return `${agent} no longer has the session of this conversation. ${advice}`
  },
  cancelled: (_, agent) => {
    return `${agent} was stopped before it finished. ${WORK_STAYS} Send the message again to have it finish.`
  },
}

/** The failure's own message says what to do. */
const POD_PROBLEMS: Record<PodProblem, (agent: string) => string> = {
  pod_not_found: () => "This project's pod was not found.",
  pod_not_running: () => "This project's pod is not ready.",
  pod_gone: (agent) =>
    `This project's pod disappeared while ${agent} was working. Anything not saved elsewhere may be lost.`,
  container_not_found: () => "This project's pod has no such container.",
  cli_missing: (agent) => `${agent} cannot be started in the image of this project's pod.`,
  directory_missing: () => "This project's directory does not exist in its pod, or cannot be used there.",
  forbidden: () => "The cluster does not allow the gateway to work in this project's pod.",
  unreachable: () => "This project's cluster does not respond, or kubectl does not work where the gateway runs.",
  stream_lost: (agent) => `The connection to this project's pod was lost while ${agent} was working. ${WORK_STAYS}`,
}

const ONCE: Attempts = { hasRun: true, attempts: 1, workedMs: 0 }

/** The text a person gets for a failed message: what happened, what to do, and the agent's own words. */
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
  return `${agent} has reached its usage limit${until}. Try again ${after}, or choose another agent with /backend.`
}

/** The note below what an agent said before it used up its turns. */
export function pauseNote({ message }: Pick<AgentFailure, 'message'>, maxTurns?: number, canContinue = false): string {
  // The operator's own arguments may set another limit, which the agent names.
  const limit = /\((\d+)\)/.exec(message)?.[1] ?? maxTurns
  const steps = limit === undefined ? '' : ` after ${limit} ${Number(limit) === 1 ? 'step' : 'steps'}`
  const word = canContinue ? 'Paused' : 'Stopped'
  return `${word}${steps}, the limit for one message.${canContinue ? ' Use /continue to resume.' : ''}`
}

/** Only the wording of `watchTurn` tells which of the two limits it was. */
function explainTimeout({ message }: AgentFailure, agent: string, _: number, { attempts, workedMs }: Attempts): string {
  const all = attempts > 1 ? `${duration(workedMs)} in ${attempts} attempts` : undefined
  const [, silence] = /printed nothing for ([\d.]+) s/.exec(message) ?? []
  if (silence !== undefined) {
    const limit = `${duration(Number(silence) * 1000)} and was stopped${all === undefined ? '' : `, after ${all}`}`
    const advice = 'Try again, or raise IDLE_TIMEOUT_MS if its work needs such pauses.'
    return `${agent} produced no output for ${limit}. ${WORK_STAYS} ${advice}`
  }
  const [, total] = /finish within ([\d.]+) s/.exec(message) ?? []
  if (total === undefined) return `${agent} took too long and was stopped. ${WORK_STAYS} Ask for a smaller step.`
  const worked = all ? `${all} without finishing` : `${duration(Number(total) * 1000)}, the limit for one turn,`
  const advice = 'Ask for a smaller step, or raise QUERY_TIMEOUT_MS.'
  return `${agent} worked for ${worked} and was stopped. ${WORK_STAYS} ${advice}`
}

const MAX_CHARACTERS = 500

/** As one block: without empty lines, and of readable length. */
function ownWords({ reason, message, podProblem }: AgentFailure): string {
  // These are our own words, which the explanation already covers.
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
  return `${podProblem || reason === 'spawn' ? 'Reason' : 'It said'}: ${text.length <= MAX_CHARACTERS ? text : cut}`
}
