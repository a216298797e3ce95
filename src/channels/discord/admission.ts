import type { APIChatInputApplicationCommandInteraction, APIMessage, APIUser } from 'discord.js'
import type { Person } from '../types.js'

export type Named = Person | { problem: string } | undefined

/** Whom a message names: the first mention of somebody else than the bot, or an id. */
export function personNamedIn({ content, mentions }: APIMessage, argument: string, botId: string): Named {
  const ids = Array.from(content.matchAll(/<@!?(\d+)>/g), ([, id = '']) => id).filter((id) => id !== botId)
  const named = [...ids, ...(/^\d{15,20}$/.test(argument) ? [argument] : [])]
  const [id, another] = named
  if (another !== undefined) return { problem: 'Name one person at a time.' }
  if (id !== undefined)
    return personOf(
      id,
      mentions.find((user) => user.id === id),
    )
  if (argument === '') return undefined
  if (/<@&\d+>/.test(content)) return { problem: 'That is a role. Roles are let in by discordRoles in aetheel.json5.' }
  const advice = 'Choose the name that Discord offers after @, or write the id.'
  return { problem: `It is not clear who is meant. ${advice}` }
}

/** Whom a slash command names. */
export function personChosenIn({ data }: APIChatInputApplicationCommandInteraction, id: string): Named {
  return id === '' ? undefined : personOf(id, data.resolved?.users?.[id])
}

function personOf(id: string, user: Pick<APIUser, 'username' | 'bot'> | undefined): Named {
  if (user?.bot) return { problem: 'That is a bot. Bots are never answered.' }
  return { id, name: user?.username ?? id }
}
