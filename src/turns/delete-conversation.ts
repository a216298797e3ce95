// Deletes a conversation for good: from the database and the archive, with the files that people sent in it.

import { isAbsolute } from 'node:path'
import type { Archive } from '../archive/archive.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError, messageOf } from '../errors.js'
import type { Log } from '../log.js'
import { removeIncomingFiles } from '../media/inbox-files.js'
import type { UploadedFiles } from '../media/uploaded-files.js'
import { chooseWorkplace } from '../runtime/agent-choice.js'
import type { Note } from '../store/audit.js'
import type { DeletedConversation } from '../store/conversations.js'
import type { Store } from '../store/store.js'
import type { ActivityHub } from '../streams/activity-hub.js'

interface DeleteDependencies {
  config: Pick<GatewayConfig, 'workingDir' | 'inbound'>
  store: Store
  archive: Pick<Archive, 'remove'>
  uploads: Pick<UploadedFiles, 'remove'>
  activity: Pick<ActivityHub, 'changed'>
  log: Log
  now: () => number
}

/** Contract: throws `conflict` while a message runs or waits in it. */
export async function deleteConversation(
  conversation: DeletedConversation,
  audit: Note,
  { config, store, archive, uploads, activity, log, now }: DeleteDependencies,
): Promise<void> {
  const { id, channel, projectId } = conversation
  const left = await store.transaction(async (tables) => {
    // Locks the conversation: no message is added before we commit.
    await tables.conversations.nextSeq(id, now())
    if ((await tables.jobs.countOpen(id)) > 0) {
      const advice = 'Stop it or wait until it ends, then try again.'
      throw new GatewayError('conflict', `A message is running or waiting in the conversation ${id}. ${advice}`)
    }
    const project = projectId === undefined ? undefined : await tables.projects.get(projectId)
    const { directory, pod } = chooseWorkplace(channel, project, config)
    const directories = new Set((await tables.runs.directories(id)).filter(isAbsolute))
    if (!pod) directories.add(directory)
    const messageIds = await tables.inbox.platformIds(id)
    const uploadIds = await tables.uploads.idsOf(id)
    await tables.conversations.delete(conversation, now())
    await audit(tables, { action: 'conversation.delete', subject: id })
    return { directories, messageIds, uploadIds }
  })
  activity.changed()
  try {
    await archive.remove(conversation)
    await uploads.remove(left.uploadIds)
    for (const directory of left.directories) await removeIncomingFiles(directory, left.messageIds)
  } catch (error) {
    // It is gone from the database: the operator can remove what is left.
    log.warn('conversation.files-left', { conversationId: id, error: messageOf(error) })
  }
}
