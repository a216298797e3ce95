/** Types of files and their usual extensions. */
const EXTENSIONS: Record<string, string> = {
  'application/json': '.json',
  'application/pdf': '.pdf',
  'application/zip': '.zip',
  'audio/mpeg': '.mp3',
  'audio/ogg': '.ogg',
  'image/gif': '.gif',
  'image/jpeg': '.jpg',
  'image/png': '.png',
  'image/svg+xml': '.svg',
  'image/webp': '.webp',
  'text/csv': '.csv',
  'text/html': '.html',
  'text/plain': '.txt',
  'video/mp4': '.mp4',
}

/** With its dot; undefined if the type is not known. */
export function extensionOf(type: string): string | undefined {
  return EXTENSIONS[type]
}

/** Undefined if the extension is not known. */
export function typeOfName(name: string): string | undefined {
  const lower = name.toLowerCase().replace(/\.jpeg$/, '.jpg')
  return Object.entries(EXTENSIONS).find(([, extension]) => lower.endsWith(extension))?.[0]
}
