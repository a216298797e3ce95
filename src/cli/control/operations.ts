// Manual changes to the queue, approvals, sessions and cron jobs. The same code runs in a gateway, behind its socket,
// and in a command that finds no gateway.

import { randomUUID } from 'node:crypto'
import type { ApprovalService } from '../../approvals/approval-service.js'
import { onlyOne } from '../../core/only-one.js'
import { GatewayError } from '../../errors.js'
import type { Queue } from '../../turns/queue.js'
import { findCronJob } from '../../schedule/find-cron-job.js'
import { addCronJob } from '../../schedule/new-cron-job.js'
import { notesOf } from '../../store/audit.js'
import type { SessionRecord } from '../../store/sessions.js'
import type { Store } from '../../store/store.js'
import { conversationName, prefixOf, severalIds } from '../listing.js'
import type { Handlers } from './protocol.js'

export interface OperationDependencies {
  store: Store
  queue: Queue
  approvals: Pick<ApprovalService, 'answer'>
  /** There may be work now. */
  wake(): void
  now: () => number
}

const SEARCH_LIMIT = 1_000

type Operation =
  | ('queue.retry' | 'queue.drop' | 'sessions.reset' | 'cron.add' | 'cron.rm')
  | ('approvals.answer' | 'approvals.forget')

export function operations(dependencies: OperationDependencies): Pick<Handlers, Operation> {
  const { store, queue, approvals, wake, now } = dependencies
  const note = notesOf('terminal', now)

  return {
    'queue.retry': async ({ id }) => {
      const fullId = await resolveId(store, id)
      const kind = await queue.retry(fullId, note)
      wake()
      return { id: fullId, kind }
    },

    'queue.drop': async ({ id }) => {
      const fullId = await resolveId(store, id)
      const outcome = await queue.drop(fullId, note)
      if (outcome === 'active') {
        throw new GatewayError('request_invalid', `${fullId} is running. Stop it with /stop in its conversation.`)
      }
      if (outcome === 'finished') {
        throw new GatewayError('request_invalid', `${fullId} is finished: there is nothing to drop.`)
      }
      wake()
      return { id: fullId }
    },

    'approvals.answer': async ({ id, ...answer }) => {
      const fullId = onlyMatch(await store.approvals.findByPrefix(prefixOf(id)), id)
      const { summary } = await approvals.answer(fullId, { ...answer, by: 'terminal' }, note)
      return { summary }
    },

    'approvals.forget': async ({ id }) => {
      const rules = await store.approvalRules.list({}, SEARCH_LIMIT)
      const matching = rules.filter((rule) => rule.id.startsWith(prefixOf(id)))
      const fullId = onlyMatch(matching, id)
      const found = rules.find((rule) => rule.id === fullId)
      if (!found) throw new GatewayError('not_found', `There is no rule ${id}. "aetheel approvals rules" lists them.`)
      await store.transaction(async (tables) => {
        await tables.approvalRules.remove(fullId)
        await note(tables, { action: 'approval-rule.remove', subject: fullId })
      })
      return { toolName: found.toolName }
    },

    'sessions.reset': async ({ conversation }) => {
      const session = findSession(conversation, await store.sessions.list(SEARCH_LIMIT))
      await store.transaction(async (tables) => {
        await tables.sessions.reset(session.conversationId, now())
        await note(tables, { action: 'session.reset', subject: session.conversationId })
      })
      return { channel: session.channel, address: session.address }
    },

    'cron.add': async (request) => {
      const { job, nextAt } = await store.transaction(async (tables) => {
        const added = await addCronJob(request, { store: tables, now, newId: randomUUID })
        await note(tables, { action: 'cron.add', subject: added.job.id })
        return added
      })
      return { name: job.name, timeZone: job.timeZone, nextAt }
    },

    'cron.rm': async ({ job: wanted }) => {
      const { id, name } = findCronJob(wanted, await store.cronJobs.list())
      await store.transaction(async (tables) => {
        await tables.cronJobs.remove(id)
        await note(tables, { action: 'cron.remove', subject: id })
      })
      return { job: name }
    },
  }
}

/** Completes the id of a message or reply. Contract: without a match it is returned unchanged, to be rejected later. */
async function resolveId({ inbox, outbox }: Pick<Store, 'inbox' | 'outbox'>, id: string): Promise<string> {
  const prefix = prefixOf(id)
  return onlyMatch([...(await inbox.findByPrefix(prefix)), ...(await outbox.findByPrefix(prefix))], id)
}

function onlyMatch(found: { id: string }[], id: string): string {
  if (found.length <= 1) return found[0]?.id ?? id
  throw new GatewayError('request_invalid', severalIds(id))
}

type ListedSession = SessionRecord & { channel: string; address: string }

/** By `channel/address`, or by the address alone if it is unique. */
function findSession(conversation: string, sessions: ListedSession[]): ListedSession {
  const found = sessions.filter((session) => [session.address, conversationName(session)].includes(conversation))
  const none = `The conversation ${conversation} has no session. "aetheel sessions" lists those that have one.`
  const names = found.map(conversationName).join(', ')
  return onlyOne(found, none, `${conversation} matches several conversations: ${names}. Give the full name.`)
}
