// Numbers are E.164 internally, such as +4915112345678; Twilio prefixes them with `whatsapp:`.

const PREFIX = 'whatsapp:'

export function toTwilio(number: string): string {
  return `${PREFIX}${number}`
}

/** Undefined if it is not a WhatsApp number. */
export function fromTwilio(address: string | null | undefined): string | undefined {
  const number = address?.startsWith(PREFIX) ? address.slice(PREFIX.length) : undefined
  return number !== undefined && isNumber(number) ? number : undefined
}

export function isNumber(text: string): boolean {
  return /^\+[1-9]\d{6,14}$/.test(text)
}

/** For the log: a full number is personal data. */
export function lastDigits(number: string): string {
  return `…${number.slice(-4)}`
}
