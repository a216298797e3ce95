// Paths below the public URL.

export const WEBHOOK_PATH = '/whatsapp/webhook'
export const STATUS_PATH = '/whatsapp/status'
export const FILES_PATH = '/whatsapp/files'

/** Shown to anyone who opens the webhook in a browser. "doctor" recognises the gateway by it. */
export const WEBHOOK_GREETING = 'Twilio delivers WhatsApp messages here, by POST.'
