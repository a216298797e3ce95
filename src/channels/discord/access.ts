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
export function howToOpen(speaker: Speaker, lists: AccessLists): string {
  return `I answer only those whom my owner has let in. To let you in, they add ${missingEntries(speaker, lists)} in aetheel.json5, and start me again.`
}

function missingEntries({ userId, guildId, channelIds }: Speaker, lists: AccessLists): string {
  const you = `your id, \`${userId}\`, to \`discordUsers\``
  const channel = `this channel, \`${channelIds[0]}\`, to \`discordChannels\``
  if (guildId === undefined) return you
  if (Object.values(lists).every((list: string[]) => list.length === 0))
    return `${you}, or for everybody here ${channel},`
  const entries = [
    ...(lists.guilds.length === 0 || lists.guilds.includes(guildId)
      ? []
      : [`this server, \`${guildId}\`, to \`discordGuilds\``]),
    ...(lists.channels.length === 0 || channelIds.some((id) => lists.channels.includes(id)) ? [] : [channel]),
    // Of people who are let in by a list of places alone, one name would shut out all others.
    ...(lists.users.length + lists.roles.length > 0 && !lists.users.includes(userId) ? [you] : []),
  ]
  return entries.join(' and ')
}
