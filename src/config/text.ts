import JSON5 from 'json5'
import { BACKEND_NAMES, type BackendName } from '../backends/types.js'

interface DiscordSettings {
  /** Absent if the environment has it. */
  token?: string | undefined
  /** Absent, the application's owners. */
  owner?: { id: string; name?: string } | undefined
}

/** The answers of "aetheel init". */
export interface FirstSettings {
  /** Of the JSON Schema. */
  schemaUrl: string
  agentBackend: BackendName
  project: { id: string; directory: string; discordChannel?: { id: string; name: string } | undefined }
  discord?: DiscordSettings | undefined
}

/** A commented configuration file for people to edit. */
export function configText({ schemaUrl, agentBackend, project, discord }: FirstSettings): string {
  const { discordChannel } = project
  const sections = [
    [`$schema: ${quoted(schemaUrl)},`],
    [comment(`The agent that answers: ${BACKEND_NAMES.join(', ')}.`), `agentBackend: ${quoted(agentBackend)},`],
    [
      comment('Directories that conversations can work in, by their ids.'),
      'projects: {',
      `  ${keyOf(project.id)}: {`,
      `    directory: ${quoted(project.directory)},`,
      ...(discordChannel
        ? [
            comment(`In this channel of Discord, and in its threads: ${discordChannel.name}`, 4),
            `    discordChannels: [${quoted(discordChannel.id)}],`,
          ]
        : []),
      '  },',
      '},',
    ],
    [comment('Where agents work in conversations that have no project.'), `workingDir: ${quoted(project.directory)},`],
    ...(discord ? discordSections(discord) : []),
  ]
  const body = sections.map((lines) => lines.map((line) => `  ${line}\n`).join('')).join('\n')
  return `${comment('Settings of Aetheel. "aetheel config check" says what is wrong, "aetheel config show" what holds.')}\n{\n${body}}\n`
}

function discordSections({ token, owner }: DiscordSettings): string[][] {
  const tokenLines =
    token === undefined
      ? [comment('The token of the Discord bot is in the variable DISCORD_BOT_TOKEN.')]
      : [
          comment('The token of the Discord bot. Whoever has it is the bot: keep this file to yourself.'),
          `discordBotToken: ${quoted(token)},`,
        ]
  const ownerLines =
    owner === undefined
      ? []
      : [
          comment(`May always talk to the bot${owner.name === undefined ? '' : `: ${owner.name}`}`),
          `discordOwnerId: ${quoted(owner.id)},`,
        ]
  const listLines = [
    comment('Others may talk to it when one of these names them, or the place where they write.'),
    ...['discordUsers', 'discordRoles', 'discordGuilds', 'discordChannels'].map((key) => `${key}: [],`),
  ]
  return [tokenLines, ownerLines, listLines].filter((lines) => lines.length > 0)
}

function quoted(text: string): string {
  return JSON5.stringify(text)
}

function keyOf(text: string): string {
  return /^[A-Za-z_]\w*$/.test(text) ? text : quoted(text)
}

/** Names are untrusted text: strip anything that would end the line. */
function comment(text: string, indent = 0): string {
  return `${' '.repeat(indent)}// ${text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim()}`
}
