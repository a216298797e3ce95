// Checks that span several settings. The schema checks each setting separately.

import { basename } from 'node:path'
import { BACKEND_NAMES } from '../backends/types.js'
import { type HeartbeatConfig, heartbeatSchema } from './heartbeat.js'
import { DEFAULT_OPENCODE_URL, DEFAULT_OPENCODE_USERNAME, type Settings } from './schema.js'
import { quote } from './problems.js'
import { parseTarget } from './target.js'
import { DEMO } from '../core/demo-agent.js'
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

/** Contract: any of these keeps the gateway from starting. */
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
  return [...replyWarnings(settings), ...heartbeatWarnings(settings, now), ...openCodeWarnings(settings)]
}

function* replyWarnings({ inbound, publicUrl, twilioAccountSid }: Settings): Generator<Finding> {
  const { allowFrom, agent, command, session, responsePrefix, mediaMaxMb = 0 } = inbound?.reply ?? {}
  if (allowFrom?.includes('*')) {
    const message = '"*" lets anyone who knows the number use your agents; list the allowed numbers'
    yield finding('inbound.reply.allowFrom', message)
  }
  if (twilioAccountSid !== undefined && !allowFrom?.length)
    yield finding('twilioAccountSid', 'nobody can write yet: add your number to inbound.reply.allowFrom')
  if (agent?.format === 'text' && session) {
    const message = 'with "text" the agent reports no session, so every message starts a new one'
    yield finding('inbound.reply.agent.format', message)
  }
  const [executable = ''] = command ?? []
  const another = BACKEND_NAMES.find((name) => name === basename(executable) && name !== agent?.kind)
  if (another !== undefined) {
    const message = `starts ${another}, but agent.kind is ${agent?.kind}: use that agent's executable`
    yield finding('inbound.reply.command', message)
  }
  const isLiteral = 'is not a template: placeholders in {{ }} are sent as written'
  if (hasPlaceholder([agent?.identityPrefix ?? ''])) yield finding('inbound.reply.agent.identityPrefix', isLiteral)
  if (hasPlaceholder([responsePrefix ?? ''])) yield finding('inbound.reply.responsePrefix', isLiteral)
  if (mediaMaxMb > LARGEST_MEDIA_MB)
    yield finding('inbound.reply.mediaMaxMb', `WhatsApp rejects files larger than ${LARGEST_MEDIA_MB} MB`)
  if (isUnencrypted(publicUrl)) yield finding('publicUrl', 'http does not encrypt messages: use https')
}

function isUnencrypted(url: string | undefined): boolean {
  return url?.startsWith('http:') === true && !/^http:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/.test(url)
}

function* agentProblems({ agentBackend, backendCliPath }: Settings): Generator<Finding> {
  if (agentBackend !== DEMO || backendCliPath === undefined) return
  yield finding('backendCliPath', 'cannot be used with agentBackend demo: remove one of the two')
}

function* projectProblems({ defaultProject, projects }: Settings): Generator<Finding> {
  if (defaultProject === undefined || Object.hasOwn(projects, defaultProject)) return
  const known = Object.keys(projects).join(', ') || 'none yet'
  yield finding('defaultProject', `there is no project ${quote(defaultProject)} in "projects". Known: ${known}`)
}

/** The gateway's own server has its own address and password; configured ones can only mean another server. */
function* openCodeProblems({ opencodeEnabled, opencodeManaged, ...settings }: Settings): Generator<Finding> {
  if (!opencodeEnabled || !opencodeManaged) return
  const { opencodeUrl, opencodeUsername, opencodePassword } = settings
  const message = 'is for a server that is already running. Remove it, or set opencodeManaged to false'
  if (opencodeUrl !== DEFAULT_OPENCODE_URL) yield finding('opencodeUrl', message)
  if (opencodeUsername !== DEFAULT_OPENCODE_USERNAME) yield finding('opencodeUsername', message)
  if (opencodePassword !== undefined) yield finding('opencodePassword', message)
}

function* openCodeWarnings(settings: Settings): Generator<Finding> {
  const { opencodeEnabled, opencodeManaged, opencodeUrl, opencodePassword } = settings
  if (opencodeManaged && !opencodeEnabled) yield finding('opencodeManaged', 'does nothing without opencodeEnabled')
  if (opencodeManaged || !opencodeEnabled) return
  if (isUnencrypted(opencodeUrl))
    yield finding('opencodeUrl', 'http does not encrypt prompts and the password: use https')
  if (opencodePassword === undefined) {
    const danger = 'if the OpenCode server has none either, anyone who can reach it can run commands as its user'
    const advice = 'Start it with OPENCODE_SERVER_PASSWORD and set opencodePassword'
    yield finding('opencodeEnabled', `no password is set: ${danger}. ${advice}`)
  }
}

function* heartbeatWarnings(settings: Settings, now: number): Generator<Finding> {
  const heartbeat = heartbeatOf(settings)
  if (!heartbeat) return
  if (isNeverDue(heartbeat, now)) {
    const problem = 'no heartbeat falls within these hours: intervals are counted from 00:00 UTC'
    yield finding('heartbeat.activeHours', `${problem}. Shorten everyMinutes, or extend the hours`)
  }
  const isUncounted = settings.inbound?.reply.agent?.format === 'text'
  if (isUncounted && parseTarget(heartbeat.to).channel === 'whatsapp')
    yield finding('heartbeat.dailyTokens', 'is only estimated: with agent.format "text" the agent reports no tokens')
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

function* whatsappProblems(settings: Settings): Generator<Finding> {
  const { twilioAccountSid, twilioAuthToken, twilioApiKey, twilioApiSecret, twilioWhatsappFrom, publicUrl } = settings
  if (twilioAccountSid === undefined) {
    const others = ['twilioAuthToken', 'twilioApiKey', 'twilioApiSecret', 'twilioWhatsappFrom'] as const
    const message = 'needs TWILIO_ACCOUNT_SID: set that too, or remove this setting'
    for (const name of others) if (settings[name] !== undefined) yield finding(name, message)
    return
  }
  const isWhole = (twilioApiKey === undefined) === (twilioApiSecret === undefined)
  const hasLogin = twilioAuthToken !== undefined || (twilioApiKey !== undefined && twilioApiSecret !== undefined)
  if (twilioWhatsappFrom === undefined)
    yield finding('twilioAccountSid', 'needs TWILIO_WHATSAPP_FROM, the number to send from')
  if (!hasLogin) yield finding('twilioAccountSid', 'needs TWILIO_AUTH_TOKEN, or TWILIO_API_KEY and TWILIO_API_SECRET')
  else if (!isWhole)
    yield finding('twilioAccountSid', 'TWILIO_API_KEY and TWILIO_API_SECRET go together: set both or neither')
  if (publicUrl === undefined) return
  if (twilioAuthToken === undefined) yield finding('publicUrl', 'needs TWILIO_AUTH_TOKEN to verify webhooks')
  if (!settings.httpEnabled)
    yield finding('publicUrl', 'webhooks need the HTTP server: remove HTTP_ENABLED=false or PUBLIC_URL')
}

function replyProblems({ inbound }: Settings): Finding[] {
  if (!inbound) return []
  const { text = '', bodyPrefix = '', command = [], session, transcribeAudio } = inbound.reply
  const problems: Record<string, string[]> = {
    command: problemsOfCommand(command),
    text: problemsOfTemplate(text),
    bodyPrefix: problemsOfTemplate(bodyPrefix),
    'session.sessionIntro': problemsOfTemplate(session?.sessionIntro ?? ''),
    'session.sessionArgNew': problemsOfSessionArguments(session?.sessionArgNew ?? []),
    'session.sessionArgResume': problemsOfSessionArguments(session?.sessionArgResume ?? []),
    'transcribeAudio.command': problemsOfArguments(transcribeAudio?.command ?? []),
  }
  return Object.entries(problems).flatMap(([place, messages]) =>
    messages.map((message) => finding(`inbound.reply.${place}`, message)),
  )
}

function* heartbeatProblems(settings: Settings): Generator<Finding> {
  const { heartbeat, inbound } = settings
  const minutes = inbound?.reply.heartbeatMinutes
  const problem = heartbeat?.to === undefined ? undefined : problemOfTarget(heartbeat.to)
  const isWanted = (heartbeat?.everyMinutes ?? minutes ?? 0) > 0
  if (heartbeat?.everyMinutes !== undefined && minutes !== undefined)
    yield finding('heartbeat.everyMinutes', 'inbound.reply.heartbeatMinutes is set too: keep only one of them')
  else if (problem !== undefined) yield finding('heartbeat.to', problem)
  else if (isWanted && !heartbeatOf(settings)) {
    const place = minutes === undefined ? 'heartbeat.everyMinutes' : 'inbound.reply.heartbeatMinutes'
    yield finding(place, 'has no recipient: set heartbeat.to, inbound.reply.allowFrom or OUTPUT_CHANNEL_ID')
  }
}

function problemOfTarget(to: string): string | undefined {
  try {
    parseTarget(to)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function finding(place: string, message: string): Finding {
  return { path: place.split('.'), message }
}
