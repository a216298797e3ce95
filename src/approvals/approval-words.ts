// Wording of approvals. Text from an agent goes into a code block that it cannot close.

import type { ApprovalRequest } from '../backends/types.js'
import { ASKED } from '../core/asked-notice.js'
import { oneLine } from '../core/one-line.js'
import { duration, isSoon, timeOfDay } from '../runtime/time-words.js'
import type { Approval, NewApproval } from '../store/approvals.js'
import type { ApprovalState } from '../store/schema.js'
import { pathOf, shownFields } from './asked-input.js'

type EndedApproval = Pick<Approval, 'state' | 'answeredBy' | 'askedAt' | 'deadline'>

const NAME_CHARACTERS = 80
const SHORT_ID_CHARACTERS = 8

/** The question as a message in the conversation. It names the commands unless the channel `offersAnswers`. */
export function questionText(approval: NewApproval, now: number, offersAnswers = false): string {
  const answers = offersAnswers ? meaningOfAlways(approval) : commandsText(approval)
  const { deadline } = approval
  const limit = isSoon(deadline, now) ? `within ${duration(deadline - now)}` : `by ${timeOfDay(deadline, now)}`
  return `${requestText(approval)}\n${[...answers, `It is denied if nobody answers ${limit}.`].join(' ')}`
}

/** Only where it covers more than the request itself shows. */
function meaningOfAlways(approval: NewApproval): string[] {
  return approval.subject !== undefined && pathOf(approval) ? [`"Always" allows ${ANYTHING}.`] : []
}

function commandsText(approval: NewApproval): string[] {
  const id = shortApprovalId(approval)
  const what = pathOf(approval) ? ANYTHING : 'exactly this'
  const always = approval.subject === undefined ? [] : [`/approve ${id} always allows ${what} from now on.`]
  return [`Allow it with /approve ${id}, or deny it with /deny ${id}.`, ...always]
}

const ANYTHING = 'anything it does to this file'

/** Replaces the question once it has ended. */
export function endedText(approval: Approval): string {
  return `${requestText(approval)}\n${outcomeText(approval)}.`
}

export function outcomeText(approval: EndedApproval): string {
  const who = plainName(approval.answeredBy ?? 'someone')
  const outcomes: Record<ApprovalState, string> = {
    asked: 'Waiting for an answer',
    allowed: `Allowed by ${who}`,
    denied: `Denied by ${who}`,
    expired: `Nobody answered within ${timeAllowed(approval)}, so it was denied`,
    withdrawn: 'No longer asked: the run has ended, or the agent continued without it',
  }
  return outcomes[approval.state]
}

/** The request, without characters that change the text direction or hide text on a terminal. */
export function inputText(approval: ApprovalRequest): string {
  const text = shownFields(approval).trim() || '(no input)'
  return text.replaceAll(/[\p{Cc}\p{Cs}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu, (character) =>
    character === '\n' || character === '\t' ? character : ' ',
  )
}

/** For the run's events. */
export function askedNotice(approval: NewApproval): string {
  return `${ASKED}(${shortApprovalId(approval)}): ${approval.summary}`
}

export function endedNotice(approval: EndedApproval & Pick<Approval, 'summary'>): string {
  return `${outcomeText(approval)}: ${approval.summary}`
}

/** Passed to the agent if it was not allowed. */
export function refusal({ state, message, askedAt, deadline }: Approval): string {
  if (state === 'denied') return message ?? 'The person who was asked denied this.'
  if (state !== 'expired') return 'This was not allowed: the question was withdrawn.'
  const advice = 'Go on without it, or end with what you would do and why.'
  return `Nobody answered within ${timeAllowed({ askedAt, deadline })}, so it was denied. ${advice}`
}

/** Short enough to type. */
export function shortApprovalId({ id }: Pick<Approval, 'id'>): string {
  return id.slice(0, SHORT_ID_CHARACTERS)
}

function requestText(approval: NewApproval): string {
  const { backend, toolName } = approval
  return `🔐 ${plainName(backend)} wants to use ${plainName(toolName)}:\n\`\`\`\n${codeOf(approval)}\n\`\`\``
}

function codeOf(approval: NewApproval): string {
  // Nothing may close the block.
  return inputText(approval).replaceAll('`', "'")
}

/** A name without markup. */
function plainName(name: string): string {
  return oneLine(name, NAME_CHARACTERS).replaceAll(/[\\`*_~|<>[\]#@]/g, '-')
}

function timeAllowed({ askedAt, deadline }: Pick<Approval, 'askedAt' | 'deadline'>): string {
  return duration(deadline - askedAt)
}
