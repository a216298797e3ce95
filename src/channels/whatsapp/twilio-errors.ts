// What Twilio's error codes mean for the operator, and what to do. The full list:
// https://www.twilio.com/docs/api/errors

/** A request that Twilio rejected. */
export class TwilioError extends Error {
  override readonly name = 'TwilioError'

  constructor(
    message: string,
    readonly status: number,
    readonly code?: number,
  ) {
    super(message)
  }

  /** Whether the same request would always be rejected. */
  get isPermanent(): boolean {
    const isTransient = [401, 403, 408, 409, 425, 429].includes(this.status) || RATE_CODES.has(this.code ?? 0)
    return this.status >= 400 && this.status < 500 && !isTransient
  }

  /** Whether Twilio rejects the operator's configuration. */
  get isRefusal(): boolean {
    return this.status === 401 || this.status === 403 || this.status === 404
  }
}

/** For messages the operator may have deleted at Twilio. */
export function undefinedIfGone(error: unknown): undefined {
  if (!(error instanceof TwilioError && error.isPermanent)) throw error
}

const RATE_CODES = new Set([14107, 20429, 63017, 63018])
const CREDENTIALS =
  'Twilio rejected the credentials. Copy the Account SID and the Auth Token (or API key and secret) from its console again'
const TOO_MANY = 'Too many messages in a short time. Wait, then send it again'
const MEDIA = 'WhatsApp did not accept the file: its type, size or content is not allowed'

const SENTENCES: ReadonlyMap<number, string> = new Map([
  [20003, CREDENTIALS],
  [20008, 'These are Twilio test credentials, which send nothing. Use the live ones'],
  [20404, 'Twilio does not know this account or message. Check the Account SID'],
  [20429, 'Too many requests to Twilio. Wait, then send it again'],
  [14107, TOO_MANY],
  [21211, 'The number is not a valid phone number. Check it'],
  [21408, 'This account may not send to that country. Allow it in the Twilio console: Messaging, Geo permissions'],
  [21606, 'The number in twilioWhatsappFrom cannot send. Use a WhatsApp sender of this account'],
  [21608, 'A Twilio trial account sends only to verified numbers. Verify the number in its console, or upgrade'],
  [21610, 'This person opted out by sending STOP. They must send START to the number of the gateway first'],
  [21614, 'The number cannot receive messages. Check it'],
  [21617, 'The message is longer than Twilio allows'],
  [21620, 'Twilio cannot use the URL of the file. It must be public, and begin with https://'],
  [21910, 'Sender and recipient are of different kinds. twilioWhatsappFrom must be a WhatsApp sender of this account'],
  [30007, 'The message was filtered as spam'],
  [30008, 'WhatsApp gave no reason. Send it again'],
  [63003, 'There is no WhatsApp account with this number. Check it'],
  [63005, 'WhatsApp did not accept the message. Ask for a shorter or simpler answer'],
  [
    63007,
    'The number in twilioWhatsappFrom is not a WhatsApp sender of this account. Look it up in the Twilio console',
  ],
  [63012, 'WhatsApp is having problems. Send it again later'],
  [63013, 'The message violates WhatsApp policy'],
  [
    63015,
    'This person has not joined the sandbox, or joined more than three days ago. They must send "join <code>" to the number of the sandbox; the code is in the Twilio console',
  ],
  [
    63016,
    'Outside the 24-hour window of WhatsApp: the person must write first (or be sent an approved template). Then send it again with "aetheel queue retry"',
  ],
  [63017, TOO_MANY],
  [63018, TOO_MANY],
  [63019, MEDIA],
  [63021, MEDIA],
  [63024, 'The number cannot receive WhatsApp messages: it has no account, or has not accepted the terms of WhatsApp'],
  [63032, 'WhatsApp does not allow messages to this person for now. Try again later'],
  [63049, 'Meta chose not to deliver it. Send it again later'],
  [63051, 'The WhatsApp account of the gateway is locked. Check Meta Business Manager'],
  [63112, 'Meta has disabled the WhatsApp account of the gateway. Check Meta Business Manager'],
])

/** A sentence for the operator. `said` is Twilio's own wording. */
export function describeError(code: number | undefined, said?: string): string {
  const words = said === undefined || said === '' ? 'Twilio gave no reason' : said.replace(/\.$/, '')
  if (code === undefined) return `${words}.`
  const known = SENTENCES.get(code)
  return `${known ?? words} (Twilio error ${code}${known === undefined ? `, https://www.twilio.com/docs/api/errors/${code}` : ''}).`
}
