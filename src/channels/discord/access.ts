/** Who may talk to the bot, and where. */
export interface AccessLists {
  guilds: string[]
  channels: string[]
  users: string[]
  roles: string[]
}

export interface Speaker {
  userId: string
  /** Empty in a direct message. */
  roleIds: string[]
  /** Absent in a direct message. */
  guildId?: string
  /** The channel itself, and that of which it is a thread. */
  channelIds: string[]
}

/**
 * Closed unless opened: without a list nobody but the owners. Every list of places that is given must match; of the
 * lists of people one is enough, and without any of them everybody there may talk.
 */
export function mayTalk(speaker: Speaker, lists: AccessLists, ownerIds: readonly string[]): boolean {
  const { userId, roleIds, guildId, channelIds } = speaker
  if (ownerIds.includes(userId)) return true
  // What is given to a server does not hold outside of it.
  if (guildId === undefined) return lists.users.includes(userId)
  const places = [
    lists.guilds.length === 0 || lists.guilds.includes(guildId),
    lists.channels.length === 0 || channelIds.some((id) => lists.channels.includes(id)),
  ]
  if (!places.every(Boolean)) return false
  if (lists.users.length + lists.roles.length === 0) return lists.guilds.length + lists.channels.length > 0
  return lists.users.includes(userId) || roleIds.some((id) => lists.roles.includes(id))
}

/** How the owner lets somebody in, with the ids to copy. */
export function howToOpen({ userId, guildId, channelIds: [channelId] }: Speaker): string {
  const place =
    guildId === undefined ? '' : `, or this channel, \`${channelId}\`, to \`discordChannels\` to let everybody here in`
  return (
    'I answer only those whom my owner has let in. ' +
    `To let you in, they add your id, \`${userId}\`, to \`discordUsers\` in aetheel.json5${place}; then they start me again.`
  )
}
