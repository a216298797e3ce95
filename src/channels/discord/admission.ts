import type { APIChatInputApplicationCommandInteraction, APIMessage, APIUser } from 'discord.js'
import type { Person } from '../types.js'

export type Named = Person | { problem: string } | undefined

/** Who a message names: the one person mentioned besides the bot, or an id. */
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
  if (/<@&\d+>/.test(content)) return { problem: 'That is a role. Add roles to discordRoles in aetheel.json5.' }
  const advice = 'Choose a name that Discord suggests after @, or write the id.'
  return { problem: `I cannot tell who you mean. ${advice}` }
}

/** Who a slash command names. */
export function personChosenIn({ data }: APIChatInputApplicationCommandInteraction, id: string): Named {
  return id === '' ? undefined : personOf(id, data.resolved?.users?.[id])
}

function personOf(id: string, user: Pick<APIUser, 'username' | 'bot'> | undefined): Named {
  if (user?.bot) return { problem: 'That is a bot. I never answer bots.' }
  return { id, name: user?.username ?? id }
}
