// Checks that span several settings. The schema checks each setting by itself.

import { basename } from 'node:path'
import { BACKEND_NAMES } from '../backends/types.js'
import { type HeartbeatConfig, heartbeatSchema } from './heartbeat.js'
import { DEFAULT_OPENCODE_URL, DEFAULT_OPENCODE_USERNAME, type Settings } from './schema.js'
import { quote } from './problems.js'
import { parseTarget } from './target.js'
import { DEMO } from './values.js'
import { messageOf } from '../errors.js'
import {
  hasPlaceholder,
  problemsOfArguments,
  problemsOfCommand,
  problemsOfSessionArguments,
  problemsOfTemplate,
} from '../turns/inbound-reply/command-template.js'
import { isNeverDue } from '../schedule/beat-times.js'

/** A problem and where it is. */
export interface Finding {
  path: PropertyKey[]
  message: string
}

const LARGEST_MEDIA_MB = 16

/** Contract: any problem finding here keeps the gateway from starting. */
export function crossSettingProblems(settings: Settings): Finding[] {
  return [
    ...whatsappProblems(settings),
    ...replyProblems(settings),
    ...heartbeatProblems(settings),
    ...openCodeProblems(settings),
    ...agentProblems(settings),
    ...projectProblems(settings),
  ]
}

/** Settings that work but are probably not intended. */
export function crossSettingWarnings(settings: Settings, now: number): Finding[] {
  const { inbound, publicUrl, twilioAccountSid } = settings
  const reply = ['inbound', 'reply']
  const { allowFrom, agent, command, session, responsePrefix, mediaMaxMb = 0 } = inbound?.reply ?? {}
  const isLiteral = 'is no template: what stands in {{ and }} is sent as it is'
  const [executable = ''] = command ?? []
  const another = BACKEND_NAMES.find((name) => name === basename(executable) && name !== agent?.kind)
  return [
    ...(allowFrom?.includes('*')
      ? [finding([...reply, 'allowFrom'], '"*" lets everybody who knows the number use your agents; name the numbers')]
      : []),
    ...(twilioAccountSid !== undefined && !allowFrom?.length
      ? [finding(['twilioAccountSid'], 'nobody may write yet: name your number in inbound.reply.allowFrom')]
      : []),
    ...(agent?.format === 'text' && session
      ? [
          finding(
            [...reply, 'agent', 'format'],
            'with "text" the agent tells no session, so every message begins a new one',
          ),
        ]
      : []),
    ...(another === undefined
      ? []
      : [
          finding(
            [...reply, 'command'],
            `starts ${another}, but agent.kind is ${agent?.kind}: name an executable of that agent`,
          ),
        ]),
    ...(hasPlaceholder([agent?.identityPrefix ?? ''])
      ? [finding([...reply, 'agent', 'identityPrefix'], isLiteral)]
      : []),
    ...(hasPlaceholder([responsePrefix ?? '']) ? [finding([...reply, 'responsePrefix'], isLiteral)] : []),
    ...(mediaMaxMb > LARGEST_MEDIA_MB
      ? [finding([...reply, 'mediaMaxMb'], `WhatsApp takes no file of more than ${LARGEST_MEDIA_MB} MB`)]
      : []),
    ...(isUnencrypted(publicUrl)
      ? [finding(['publicUrl'], 'messages travel readable to others over http: use https')]
      : []),
    ...heartbeatWarnings(settings, now),
    ...openCodeWarnings(settings),
  ]
}

function isUnencrypted(url: string | undefined): boolean {
  return url?.startsWith('http:') === true && !/^http:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/.test(url)
}

function agentProblems({ agentBackend, backendCliPath }: Settings): Finding[] {
  if (agentBackend !== DEMO || backendCliPath === undefined) return []
  return [finding(['backendCliPath'], 'is for an agent of yours, and agentBackend is demo: take one of the two out')]
}

function projectProblems({ defaultProject, projects }: Settings): Finding[] {
  if (defaultProject === undefined || Object.hasOwn(projects, defaultProject)) return []
  const known = Object.keys(projects).join(', ') || 'none yet'
  return [finding(['defaultProject'], `there is no project ${quote(defaultProject)} in "projects". Known: ${known}`)]
}

/** The gateway's own server has its own address and password; configured ones can only mean another server. */
function openCodeProblems({ opencodeEnabled, opencodeManaged, ...settings }: Settings): Finding[] {
  if (!opencodeEnabled || !opencodeManaged) return []
  const { opencodeUrl, opencodeUsername, opencodePassword } = settings
  const given = [
    ...(opencodeUrl === DEFAULT_OPENCODE_URL ? [] : ['opencodeUrl']),
    ...(opencodeUsername === DEFAULT_OPENCODE_USERNAME ? [] : ['opencodeUsername']),
    ...(opencodePassword === undefined ? [] : ['opencodePassword']),
  ]
  const message = 'is for a server that runs already. Leave it out, or set opencodeManaged to false'
  return given.map((name) => finding([name], message))
}

function openCodeWarnings({ opencodeEnabled, opencodeManaged, opencodeUrl, opencodePassword }: Settings): Finding[] {
  if (!opencodeEnabled) {
    return opencodeManaged ? [finding(['opencodeManaged'], 'does nothing without opencodeEnabled')] : []
  }
  if (opencodeManaged) return []
  return [
    ...(isUnencrypted(opencodeUrl)
      ? [finding(['opencodeUrl'], 'prompts and the password travel readable to others over http: use https')]
      : []),
    ...(opencodePassword === undefined
      ? [
          finding(
            ['opencodeEnabled'],
            'no password is set: on an OpenCode server that has none either, everybody who reaches it can run commands as its user. Start it with OPENCODE_SERVER_PASSWORD, and set opencodePassword',
          ),
        ]
      : []),
  ]
}

function heartbeatWarnings(settings: Settings, now: number): Finding[] {
  const heartbeat = heartbeatOf(settings)
  if (!heartbeat) return []
  const { format } = settings.inbound?.reply.agent ?? {}
  const isUncounted = format === 'text' && parseTarget(heartbeat.to).channel === 'whatsapp'
  return [
    ...(isNeverDue(heartbeat, now)
      ? [
          finding(
            ['heartbeat', 'activeHours'],
            `hold no time that is due: times are counted from 00:00 UTC. Write shorter everyMinutes, or longer hours`,
          ),
        ]
      : []),
    ...(isUncounted
      ? [finding(['heartbeat', 'dailyTokens'], 'is only estimated: with agent.format "text" no tokens are told')]
      : []),
  ]
}

/** The heartbeat with its defaults filled in; undefined if there is none. */
export function heartbeatOf({
  heartbeat,
  inbound,
  outputChannelId,
  discordBotToken,
}: Settings): (HeartbeatConfig & { everyMinutes: number; to: string }) | undefined {
  const everyMinutes = heartbeat?.everyMinutes ?? inbound?.reply.heartbeatMinutes ?? 0
  if (everyMinutes === 0) return undefined
  const person = inbound?.reply.allowFrom?.find((number) => number !== '*')
  const channel = discordBotToken === undefined ? undefined : outputChannelId
  const usual = person === undefined ? channel && `discord:${channel}` : `whatsapp:${person}`
  const to = heartbeat?.to ?? usual
  return to === undefined ? undefined : { ...(heartbeat ?? heartbeatSchema.parse({})), everyMinutes, to }
}

function whatsappProblems(settings: Settings): Finding[] {
  const { twilioAccountSid, twilioAuthToken, twilioApiKey, twilioApiSecret, twilioWhatsappFrom } = settings
  const others = ['twilioAuthToken', 'twilioApiKey', 'twilioApiSecret', 'twilioWhatsappFrom'] as const
  if (twilioAccountSid === undefined) {
    return others
      .filter((name) => settings[name] !== undefined)
      .map((name) => finding([name], 'needs TWILIO_ACCOUNT_SID beside it: set that one, or take this one out'))
  }
  const isWhole = (twilioApiKey === undefined) === (twilioApiSecret === undefined)
  const hasLogin = twilioAuthToken !== undefined || (twilioApiKey !== undefined && twilioApiSecret !== undefined)
  const needsAuthToken = settings.publicUrl !== undefined && twilioAuthToken === undefined
  const at = ['twilioAccountSid']
  return [
    ...(twilioWhatsappFrom === undefined ? [finding(at, 'needs TWILIO_WHATSAPP_FROM, the number to send from')] : []),
    ...(hasLogin ? [] : [finding(at, 'needs TWILIO_AUTH_TOKEN, or TWILIO_API_KEY and TWILIO_API_SECRET')]),
    ...(hasLogin && !isWhole
      ? [finding(at, 'TWILIO_API_KEY and TWILIO_API_SECRET go together: set both or none')]
      : []),
    ...(needsAuthToken ? [finding(['publicUrl'], 'webhooks are checked with TWILIO_AUTH_TOKEN: set it')] : []),
    ...(settings.publicUrl !== undefined && !settings.httpEnabled
      ? [finding(['publicUrl'], 'webhooks come by the HTTP server: take out HTTP_ENABLED=false, or PUBLIC_URL')]
      : []),
  ]
}

function replyProblems({ inbound }: Settings): Finding[] {
  if (!inbound) return []
  const { text, bodyPrefix, command, session, transcribeAudio } = inbound.reply
  const at = (...path: string[]): PropertyKey[] => ['inbound', 'reply', ...path]
  const inText = (template: string | undefined, ...path: string[]): Finding[] =>
    problemsOfTemplate(template ?? '').map((message) => finding(at(...path), message))
  const inSession = (name: 'sessionArgNew' | 'sessionArgResume'): Finding[] =>
    problemsOfSessionArguments(session?.[name] ?? []).map((message) => finding(at('session', name), message))
  return [
    ...problemsOfCommand(command ?? []).map((message) => finding(at('command'), message)),
    ...inText(text, 'text'),
    ...inText(bodyPrefix, 'bodyPrefix'),
    ...inText(session?.sessionIntro, 'session', 'sessionIntro'),
    ...inSession('sessionArgNew'),
    ...inSession('sessionArgResume'),
    ...problemsOfArguments(transcribeAudio?.command ?? []).map((message) =>
      finding(at('transcribeAudio', 'command'), message),
    ),
  ]
}

function heartbeatProblems(settings: Settings): Finding[] {
  const { heartbeat, inbound } = settings
  const minutes = inbound?.reply.heartbeatMinutes
  if (heartbeat?.everyMinutes !== undefined && minutes !== undefined) {
    return [finding(['heartbeat', 'everyMinutes'], 'inbound.reply.heartbeatMinutes says it, too: keep one of them')]
  }
  const problem = heartbeat?.to === undefined ? undefined : problemOfTarget(heartbeat.to)
  if (problem !== undefined) return [finding(['heartbeat', 'to'], problem)]
  const isWanted = (heartbeat?.everyMinutes ?? minutes ?? 0) > 0
  if (!isWanted || heartbeatOf(settings)) return []
  const path = minutes === undefined ? ['heartbeat', 'everyMinutes'] : ['inbound', 'reply', 'heartbeatMinutes']
  return [finding(path, 'there is nobody to tell: set heartbeat.to, inbound.reply.allowFrom or OUTPUT_CHANNEL_ID')]
}

function problemOfTarget(to: string): string | undefined {
  try {
    parseTarget(to)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function finding(path: PropertyKey[], message: string): Finding {
  return { path, message }
}
