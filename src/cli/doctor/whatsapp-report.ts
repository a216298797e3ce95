import { randomUUID } from 'node:crypto'
import { signatureOf } from '../../channels/whatsapp/signature.js'
import { TwilioApi } from '../../channels/whatsapp/twilio-api.js'
import { TwilioError } from '../../channels/whatsapp/twilio-errors.js'
import { WEBHOOK_GREETING, WEBHOOK_PATH } from '../../channels/whatsapp/public-paths.js'
import type { GatewayConfig } from '../../config.js'
import { startDeadline } from '../../core/async.js'
import { agentProblem } from '../../runtime/configured-agents.js'
import { messageOf } from '../../errors.js'
import { findExecutable, isDirectory } from '../../core/paths.js'
import type { Log } from '../../log.js'
import { type DoctorReport, renderFindings } from './findings.js'
import { twilioAccount } from '../../channels/configured-channels.js'
import {
  type Doubt,
  type LocalFacts,
  type PublicFacts,
  type TwilioFacts,
  whatsAppFindings,
} from './whatsapp-findings.js'

const TIMEOUT_MS = 10_000

/** The part of `aetheel doctor` about WhatsApp. Contract: never rejects, sends no message, and changes nothing. */
export async function whatsAppReport(
  config: GatewayConfig,
  { environment, admitted = [], log }: { environment: NodeJS.ProcessEnv; admitted?: string[]; log: Log },
): Promise<DoctorReport> {
  const account = twilioAccount(config)
  const { twilioWhatsappFrom: from, twilioApiUrl: apiUrl, twilioAuthToken: authToken } = config
  if (!account || from === undefined) {
    return { text: '- WhatsApp: not configured; see docs/whatsapp.md', isHealthy: true }
  }
  const api = new TwilioApi({ ...account, apiUrl })
  const owner = { user: account.accountSid, password: authToken ?? '' }
  const facts: TwilioFacts = {
    messages: await attempt(() => api.pages({ to: from }).next()),
    // An API key can do everything the gateway needs, but cannot read the account.
    account:
      authToken === undefined
        ? { problem: 'not asked', isRefusal: false }
        : await attempt(() => new TwilioApi({ ...account, apiUrl, auth: owner }).account()),
    senders: await attempt(() => api.senders()),
  }
  const findings = whatsAppFindings({ ...config, from }, facts, {
    publicFacts: await checkPublicUrl(config),
    localFacts: await checkLocal(config, environment, log),
    admitted,
  })
  return renderFindings('WhatsApp', findings)
}

/** Checks what `inbound.reply` refers to on this machine. */
async function checkLocal(config: GatewayConfig, environment: NodeJS.ProcessEnv, log: Log): Promise<LocalFacts> {
  const { agent, command, cwd, transcribeAudio } = config.inbound?.reply ?? {}
  const [executable] = command ?? []
  const problem = agent && (await agentProblem(agent.kind, executable, config, { environment, log }))
  const [transcriber] = transcribeAudio?.command ?? []
  const hasTranscriber = findExecutable(transcriber ?? '', environment['PATH'] ?? '') !== undefined
  return {
    agent: agent?.kind,
    agentProblem: problem,
    missingDirectory: cwd !== undefined && isDirectory(cwd) ? undefined : cwd,
    missingTranscriber: hasTranscriber ? undefined : transcriber,
  }
}

/** Calls the gateway at its public URL, as Twilio does. */
async function checkPublicUrl({ publicUrl, twilioAuthToken }: GatewayConfig): Promise<PublicFacts | undefined> {
  if (publicUrl === undefined || twilioAuthToken === undefined) return undefined
  const url = `${publicUrl}${WEBHOOK_PATH}`
  // Without a number the gateway ignores it, and says so only if the signature is right.
  const form = new URLSearchParams({ AetheelSelfTest: randomUUID() })
  const signature = signatureOf(twilioAuthToken, url, form)
  return {
    greeting: await attempt(async () => {
      const { status, text } = await fetchText(url)
      return { status, isOurs: text.includes(WEBHOOK_GREETING) }
    }),
    signed: await attempt(async () => {
      const headers = { 'x-twilio-signature': signature }
      return fetchText(url, { method: 'POST', body: form, headers })
    }),
  }
}

async function fetchText(url: string, request: RequestInit = {}): Promise<{ status: number; text: string }> {
  const tooLate = new Error(`no answer within ${TIMEOUT_MS / 1000} s`)
  const { signal, clear } = startDeadline(TIMEOUT_MS, undefined, tooLate)
  try {
    const response = await fetch(url, { ...request, redirect: 'manual', signal })
    return { status: response.status, text: await response.text() }
  } finally {
    clear()
  }
}

async function attempt<T>(ask: () => Promise<T>): Promise<{ value: T } | Doubt> {
  try {
    return { value: await ask() }
  } catch (error) {
    const { cause } = error as Error
    const problem = error instanceof TwilioError ? error.message : messageOf(cause ?? error)
    return { problem, isRefusal: error instanceof TwilioError && error.isRefusal }
  }
}
