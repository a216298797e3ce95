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
 * lists of people one match is enough, and if neither is configured, everyone there may talk. A person admitted by
 * `/allow` counts as listed, but does not close a place that is open to everyone.
 */
export function mayTalk(
  speaker: Speaker,
  lists: AccessLists,
  ownerIds: readonly string[],
  { isAdmitted = false } = {},
): boolean {
  const { userId, roleIds, guildId } = speaker
  if (ownerIds.includes(userId)) return true
  const isNamed = isAdmitted || lists.users.includes(userId)
  // Access through a server does not apply outside it.
  if (guildId === undefined) return isNamed
  if (!isOpen(speaker, lists)) return false
  if (isNamed || roleIds.some((id) => lists.roles.includes(id))) return true
  return lists.users.length + lists.roles.length === 0 && lists.guilds.length + lists.channels.length > 0
}

/** Whether each configured list of places has this one. */
function isOpen(speaker: Speaker, lists: AccessLists): boolean {
  return hasGuild(speaker, lists) && hasChannel(speaker, lists)
}

function hasGuild({ guildId }: Speaker, { guilds }: AccessLists): boolean {
  return guilds.length === 0 || (guildId !== undefined && guilds.includes(guildId))
}

function hasChannel({ channelIds }: Speaker, { channels }: AccessLists): boolean {
  return channels.length === 0 || channelIds.some((id) => channels.includes(id))
}

/** Tells a person how the owner can grant access, with the ids to copy. */
export function howToGetAccess(speaker: Speaker, lists: AccessLists, { isAdmitted = false } = {}): string {
  return `I only answer people my owner has let in. To let you in, they can ${steps(speaker, lists, isAdmitted)}.`
}

function steps(speaker: Speaker, lists: AccessLists, isAdmitted: boolean): string {
  const { userId, guildId, channelIds } = speaker
  const allow = `type \`/allow ${userId}\``
  const inFile = (entries: string): string => `add ${entries} in aetheel.json5 and restart me`
  const channel = `this channel, \`${channelIds[0]}\`, to \`discordChannels\``
  if (guildId === undefined) return allow
  if (Object.values(lists).every((list: string[]) => list.length === 0)) {
    return `${allow} here, or, to let everyone here in, ${inFile(channel)}`
  }
  const places = [
    ...(hasGuild(speaker, lists) ? [] : [`this server, \`${guildId}\`, to \`discordGuilds\``]),
    ...(hasChannel(speaker, lists) ? [] : [channel]),
  ]
  // Where places by themselves grant access, people need not be listed.
  const needsName = lists.users.length + lists.roles.length > 0 && !lists.users.includes(userId) && !isAdmitted
  if (places.length === 0) return `${allow} here`
  return [inFile(places.join(' and ')), ...(needsName ? [allow] : [])].join(', then ')
}
