// Turns the answers of Twilio, and of the gateway at its public URL, into findings.

import type { TwilioAccount, TwilioSender } from '../../channels/whatsapp/twilio-api.js'
import { WEBHOOK_PATH } from '../../channels/whatsapp/public-paths.js'
import type { GatewayConfig } from '../../config.js'
import { bad, doubtful, type Finding, good } from './findings.js'

/** Why something could not be determined. */
export interface Doubt {
  problem: string
  /** Twilio rejected the credentials. */
  isRefusal: boolean
}

type Found<T> = { value: T } | Doubt

export interface TwilioFacts {
  messages: Found<unknown>
  account: Found<TwilioAccount>
  senders: Found<TwilioSender[]>
}

export interface PublicFacts {
  /** The webhook's answer to a browser. */
  greeting: Found<{ status: number; isOurs: boolean }>
  /** The webhook's answer to a signed request, as from Twilio. */
  signed: Found<{ status: number }>
}

/** What was found on this machine. */
export interface LocalFacts {
  /** Undefined if no agent answers. */
  agent: string | undefined
  /** Why it cannot start, and what to do. */
  agentProblem: string | undefined
  missingDirectory: string | undefined
  missingTranscriber: string | undefined
}

interface LookedUp {
  publicFacts: PublicFacts | undefined
  localFacts: LocalFacts
  /** The numbers let in with `/allow`. */
  admitted: string[]
}

type Settings = Pick<GatewayConfig, 'publicUrl' | 'twilioAuthToken' | 'whatsappPollSeconds' | 'inbound'> & {
  from: string
}

/** Twilio's shared number for testing. */
const SANDBOX = '+14155238886'
const CONSOLE = 'https://console.twilio.com'

export function whatsAppFindings(
  config: Settings,
  facts: TwilioFacts,
  { publicFacts, localFacts, admitted }: LookedUp,
): Finding[] {
  return [
    ...accountFindings(facts),
    ...senderFindings(config, facts),
    publicFinding(config, publicFacts),
    ...localFindings(localFacts),
    audienceFinding(config, admitted),
  ]
}

function* accountFindings({ messages, account }: TwilioFacts): Generator<Finding> {
  if ('problem' in messages) {
    const advice = messages.isRefusal
      ? `Copy the Account SID and the Auth Token, or an API key and its secret, from ${CONSOLE}`
      : 'Check the network, twilioApiUrl, and https://status.twilio.com'
    yield bad(messages.problem, advice)
  } else if ('problem' in account) {
    yield good(account.isRefusal ? 'the API key works' : 'the credentials work')
    const problem = 'twilioAuthToken is not the Auth Token of this account, so every webhook would be rejected'
    if (account.isRefusal) yield bad(problem, `Copy it from ${CONSOLE}, Account info`)
  } else {
    const { status, type, friendly_name: name } = account.value
    if (status === 'active') yield good(`the credentials work; the account is ${name}`)
    else yield bad(`the account ${name} is ${status}, so it sends nothing`, `See ${CONSOLE}`)
    const limit = 'it is a trial account, which sends only to verified numbers'
    if (type === 'Trial') yield doubtful(limit, 'Verify yours in the console, or upgrade')
  }
}

function senderFindings({ from, publicUrl }: Settings, { messages, senders }: TwilioFacts): Finding[] {
  // If Twilio cannot be asked, one finding about that is enough.
  if ('problem' in messages) return []
  const webhook = publicUrl === undefined ? undefined : `${publicUrl}${WEBHOOK_PATH}`
  if (from === SANDBOX) {
    const where = `${CONSOLE}, Messaging, Try it out, Send a WhatsApp message`
    const settings = `under Sandbox settings there, "When a message comes in" must be ${webhook ?? 'empty'}`
    const fact = `${from} is Twilio's sandbox: people must join it first, and again after three days`
    return [doubtful(fact, `The join code is at ${where}; ${settings}`)]
  }
  if ('problem' in senders) {
    return [doubtful(`cannot tell whether ${from} is a WhatsApp sender`, senders.problem)]
  }
  const sender = senders.value.find(({ sender_id }) => sender_id === `whatsapp:${from}`)
  if (!sender) {
    const known = senders.value.map(({ sender_id }) => sender_id).join(', ')
    const none = `It has none yet: add one at ${CONSOLE}, Messaging, Senders`
    return [bad(`${from} is not a WhatsApp sender of this account`, known === '' ? none : `Its senders: ${known}`)]
  }
  const where = `${CONSOLE}, Messaging, Senders, WhatsApp senders`
  const state = sender.status.startsWith('ONLINE')
    ? good(`${from} is a WhatsApp sender, and online`)
    : bad(`the sender ${from} is ${sender.status}`, `See ${where}`)
  if (webhook === undefined) return [state]
  const called = sender.webhook?.callback_url || 'no URL'
  if (called === webhook) return [state, good('Twilio calls this gateway for incoming messages')]
  const advice = `Set "Webhook URL for incoming messages" to ${webhook} at ${where}`
  return [state, bad(`Twilio calls ${called} for incoming messages`, advice)]
}

function publicFinding(config: Settings, facts: PublicFacts | undefined): Finding {
  const { publicUrl, twilioAuthToken, whatsappPollSeconds } = config
  if (publicUrl === undefined) {
    const polling = `Twilio is polled every ${whatsappPollSeconds} s, and files on this machine cannot be sent`
    return good(`no publicUrl is set: ${polling}`)
  }
  if (twilioAuthToken === undefined || !facts) {
    return bad('webhooks cannot be checked without the Auth Token', 'Set TWILIO_AUTH_TOKEN in addition to the API key')
  }
  const { greeting, signed } = facts
  const advice = 'Start the gateway, and check the tunnel or proxy that leads to its HTTP API'
  if ('problem' in greeting) return bad(`${publicUrl} cannot be reached: ${greeting.problem}`, advice)
  const { status, isOurs } = greeting.value
  if (!isOurs) return bad(`${publicUrl}${WEBHOOK_PATH} answers with status ${status}, but is not the gateway`, advice)
  if ('problem' in signed) return bad(`${publicUrl} cannot be reached: ${signed.problem}`, advice)
  if (signed.value.status === 200) return good(`${publicUrl} leads to the gateway, which accepts Twilio's signature`)
  const problem = `the gateway behind ${publicUrl} rejects requests signed with this Auth Token for this URL`
  return bad(problem, 'Restart it with the same twilioAuthToken and publicUrl as here')
}

function* localFindings({ agent, agentProblem, missingDirectory, missingTranscriber }: LocalFacts): Generator<Finding> {
  if (agent !== undefined) {
    yield agentProblem === undefined ? good(`${agent} answers`) : bad(`${agent} cannot answer`, agentProblem)
  }
  if (missingDirectory !== undefined) {
    const problem = `the directory ${missingDirectory} does not exist, so nothing can be answered there`
    yield bad(problem, 'Create it, or set inbound.reply.cwd to another directory')
  }
  if (missingTranscriber !== undefined) {
    const problem = `${missingTranscriber} was not found, or is not executable, so voice messages are not transcribed`
    yield bad(problem, 'Install it, or start inbound.reply.transcribeAudio.command with its path')
  }
}

function audienceFinding({ inbound }: Settings, admitted: string[]): Finding {
  const { allowFrom = [] } = inbound?.reply ?? {}
  if (allowFrom.includes('*')) {
    const risk = 'anyone who knows the number may talk to the agent, which can change and run anything that you can'
    return doubtful(risk, 'List numbers in inbound.reply.allowFrom instead of "*"')
  }
  const others = inbound?.reply ? admitted.filter((number) => !allowFrom.includes(number)) : []
  const count = allowFrom.length + others.length
  if (count === 0) {
    return doubtful('nobody may write', 'Add your number to inbound.reply.allowFrom, as +4915112345678')
  }
  const byCommand = others.length === 0 ? '' : `, ${others.length} of them let in with /allow`
  return good(`${count === 1 ? '1 number' : `${count} numbers`} may write${byCommand}`)
}
