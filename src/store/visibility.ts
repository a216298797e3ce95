// Who may see which conversations: as a function and as conditions of SQL, which must agree.

import { type Expression, expressionBuilder, type ExpressionBuilder, type Kysely, sql, type SqlBool } from 'kysely'
import { type Conversation, PROJECT_ID, withParent } from './conversations.js'
import type { ProjectRecord } from './projects.js'
import type { Schema } from './schema.js'

/** What someone may see. */
export interface Visibility {
  /** Only conversations of these projects; if absent, of all projects and of none. */
  projects?: Pick<ProjectRecord, 'id' | 'instance'>[]
  /** Whether conversations that only one person reads are included. */
  seesPrivate: boolean
}

export const EVERYTHING: Visibility = { seesPrivate: true }

/** Commands to projects: each stays with the project it was sent to. */
const COMMANDS = 'http'
/** Their addresses begin with the instance of a project, so that a later project with the same id does not get them. */
const CHANNELS_BY_INSTANCE = [COMMANDS, 'web']

type Visible = ExpressionBuilder<Schema & { parent: { project_id: string | null } }, 'conversations' | 'parent'>

export function canSee(
  { projects, seesPrivate }: Visibility,
  { channel, address, projectId, isPrivate }: Conversation & { isPrivate: boolean },
): boolean {
  if (isPrivate && !seesPrivate) return false
  if (!projects) return true
  const isInOne = channel === COMMANDS || projects.some(({ id }) => id === projectId)
  if (!CHANNELS_BY_INSTANCE.includes(channel)) return isInOne
  return isInOne && projects.some(({ instance }) => address.startsWith(`${instance}/`))
}

/** `canSee` as a condition, in a query `withParent`. */
export function isVisible(
  { eb, and, or, lit, not }: Visible,
  { projects, seesPrivate }: Visibility,
): Expression<SqlBool> {
  const isShown = seesPrivate ? lit(true) : eb('conversations.is_private', '=', 0)
  if (!projects) return isShown
  if (projects.length === 0) return lit(false)
  const ids = projects.map(({ id }) => id)
  const isInOne = or([eb('conversations.channel', '=', COMMANDS), eb(PROJECT_ID, 'in', ids)])
  const isOfInstance = or([
    not(eb('conversations.channel', 'in', CHANNELS_BY_INSTANCE)),
    ...projects.map(({ instance }) =>
      eb(sql<string>`substr(conversations.address, 1, ${instance.length + 1})`, '=', `${instance}/`),
    ),
  ])
  return and([isShown, isInOne, isOfInstance])
}

/**
 * `canSee` as a condition on the column of a row that has the id of a conversation.
 *
 * The conversation is looked up for each row: a list of all visible ones would be as long as the history, however few rows
 * there are.
 */
export function inVisibleConversation(
  db: Kysely<Schema>,
  visibility: Visibility,
  conversationId: string,
): Expression<SqlBool> {
  const { lit, exists } = expressionBuilder<Schema>()
  if (!visibility.projects && visibility.seesPrivate) return lit(true)
  return exists(
    withParent(db)
      .select('conversations.id')
      .where('conversations.id', '=', sql.ref<string>(conversationId))
      .where((eb) => isVisible(eb, visibility)),
  )
}
