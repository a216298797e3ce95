// Below the public URL.

export const WEBHOOK_PATH = '/whatsapp/webhook'
export const STATUS_PATH = '/whatsapp/status'
export const FILES_PATH = '/whatsapp/files'

/** What whoever looks at the webhook with a browser reads. "doctor" knows the gateway by it. */
export const WEBHOOK_GREETING = 'Twilio brings WhatsApp messages here, by POST.'
