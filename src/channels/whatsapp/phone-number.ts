// Numbers stand in the form of E.164 inside, as +4915112345678; at Twilio they have `whatsapp:` before them.

const PREFIX = 'whatsapp:'

export function toTwilio(number: string): string {
  return `${PREFIX}${number}`
}

/** Nothing when it is no WhatsApp number. */
export function fromTwilio(address: string | undefined): string | undefined {
  const number = address?.startsWith(PREFIX) ? address.slice(PREFIX.length) : undefined
  return number !== undefined && isNumber(number) ? number : undefined
}

export function isNumber(text: string): boolean {
  return /^\+[1-9]\d{6,14}$/.test(text)
}

/** For the log: a number is somebody's. */
export function lastDigits(number: string): string {
  return `…${number.slice(-4)}`
}
