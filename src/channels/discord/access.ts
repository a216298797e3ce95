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
  guildId?: string | undefined
  /** The channel itself and, for a thread, its parent. */
  channelIds: string[]
}

/**
 * Closed by default: without any list only the owners have access. Every configured list of places must match; of the
 * lists of people one match is enough, and if neither is configured, everyone there may talk.
 */
export function mayTalk(speaker: Speaker, lists: AccessLists, ownerIds: readonly string[]): boolean {
  const { userId, roleIds, guildId, channelIds } = speaker
  if (ownerIds.includes(userId)) return true
  // Access through a server does not apply outside it.
  if (guildId === undefined) return lists.users.includes(userId)
  const places = [
    lists.guilds.length === 0 || lists.guilds.includes(guildId),
    lists.channels.length === 0 || channelIds.some((id) => lists.channels.includes(id)),
  ]
  if (!places.every(Boolean)) return false
  if (lists.users.length + lists.roles.length === 0) return lists.guilds.length + lists.channels.length > 0
  return lists.users.includes(userId) || roleIds.some((id) => lists.roles.includes(id))
}

/** Tells a person how the owner can grant access, with the ids to copy. */
export function howToGetAccess(speaker: Speaker, lists: AccessLists): string {
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
    // If places alone grant access, adding one name would shut out everyone else.
    ...(lists.users.length + lists.roles.length > 0 && !lists.users.includes(userId) ? [you] : []),
  ]
  return entries.join(' and ')
}
