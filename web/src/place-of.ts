import type { Conversation } from '../../src/client/aetheel-client.js'

/** What a conversation is called where one has not named it. */
export function placeOf({ project_id: project, channel, is_private: isPrivate }: Conversation): string {
  return [project ?? 'no project', isPrivate ? `${channel}, private` : channel].join(' · ')
}
