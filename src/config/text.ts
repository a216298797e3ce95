import JSON5 from 'json5'
import { BACKEND_NAMES, type BackendName, type Permissions } from '../backends/types.js'
import { DEMO } from '../core/demo-agent.js'

interface DiscordSettings {
  /** Absent if the environment has it. */
  token?: string | undefined
  /** Default: the application's owners. */
  owner?: { id: string; name?: string } | undefined
}

/** The answers of "aetheel init". */
export interface FirstSettings {
  /** The URL of the JSON Schema. */
  schemaUrl: string
  agentBackend: BackendName | typeof DEMO
  agentPermissions: Permissions
  project: { id: string; directory: string; discordChannel?: { id: string; name: string } | undefined }
  /** Default: that of the schema. */
  httpPort?: number | undefined
  discord?: DiscordSettings | undefined
}

/** A commented configuration file for people to edit. */
export function configText(settings: FirstSettings): string {
  const { schemaUrl, agentBackend, agentPermissions, project, httpPort, discord } = settings
  const { discordChannel } = project
  const sections = [
    [`$schema: ${quoted(schemaUrl)},`],
    [
      comment(`The agent that answers: ${BACKEND_NAMES.join(', ')}; or ${DEMO}, the built-in one without a model.`),
      `agentBackend: ${quoted(agentBackend)},`,
    ],
    [
      comment('Whether it asks a person before commands and edits (ask), or never asks (allow).'),
      `agentPermissions: ${quoted(agentPermissions)},`,
    ],
    [
      comment('Directories in which conversations can work, by id.'),
      'projects: {',
      `  ${keyOf(project.id)}: {`,
      `    directory: ${quoted(project.directory)},`,
      ...(discordChannel
        ? [
            comment(`For this Discord channel and its threads: ${discordChannel.name}`, 4),
            `    discordChannels: [${quoted(discordChannel.id)}],`,
          ]
        : []),
      '  },',
      '},',
    ],
    [comment('The project of conversations that do not choose one.'), `defaultProject: ${quoted(project.id)},`],
    [comment('Where agents work without a project.'), `workingDir: ${quoted(project.directory)},`],
    ...(httpPort === undefined ? [] : [[comment('Where the dashboard listens.'), `httpPort: ${httpPort},`]]),
    ...(discord ? discordSections(discord) : []),
  ]
  const body = sections.map((lines) => lines.map((line) => `  ${line}\n`).join('')).join('\n')
  return `${comment('Aetheel settings. Check them with "aetheel config check", list them with "aetheel config show".')}\n{\n${body}}\n`
}

function discordSections({ token, owner }: DiscordSettings): string[][] {
  const tokenLines =
    token === undefined
      ? [comment('The Discord bot token is in the environment variable DISCORD_BOT_TOKEN.')]
      : [
          comment('The Discord bot token. Anyone who has it can act as the bot: keep this file private.'),
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
    comment('Others may talk to the bot if one of these lists contains them or the place where they write.'),
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
