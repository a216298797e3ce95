// The media types WhatsApp supports. https://www.twilio.com/docs/whatsapp/guidance-whatsapp-media-messages

const TYPES = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
  opus: 'audio/ogg',
  amr: 'audio/amr',
  aac: 'audio/aac',
  '3gp': 'audio/3gpp',
  m4a: 'audio/mp4',
  mp4: 'video/mp4',
  pdf: 'application/pdf',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  vcf: 'text/vcard',
} as const satisfies Record<string, string>

export const SENDABLE = 'pictures (JPEG, PNG, WebP), audio, MP4, PDF, DOC, DOCX, PPTX, XLSX and VCF'

/** The type of an outgoing file, by its name; undefined if WhatsApp does not accept it. */
export function sendableType(name: string): string | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase()
  return Object.entries(TYPES).find(([known]) => known === extension)?.[1]
}

/** A name for a file that came without one, with an extension that programs recognise. */
export function nameFor(type: string, index: number): string {
  const [essence = ''] = type.toLowerCase().split(';', 1)
  const [kind = ''] = essence.split('/', 1)
  const subtype = essence.slice(kind.length + 1)
  const known = Object.entries(TYPES).find(([, value]) => value === essence.trim())?.[0]
  const extension = known ?? (/^[a-z0-9]{2,5}$/.test(subtype.trim()) ? subtype.trim() : 'bin')
  const stem = ['image', 'audio', 'video'].includes(kind) ? kind : 'document'
  return `${stem}${index === 0 ? '' : `-${index + 1}`}.${extension}`
}
