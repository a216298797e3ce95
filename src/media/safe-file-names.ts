const MAX_NAME_LENGTH = 100
/** File systems count bytes, and allow 255 of them. */
const MAX_NAME_BYTES = 240
/** Including the dot. Anything longer is part of the name. */
const MAX_EXTENSION_LENGTH = 16
const EXTENSION = /\.[\p{L}\d]+$/u

/**
 * Makes safe file names from those that people gave.
 *
 * Contract: for any input, each result is a plain name that stays in its directory, is not hidden, cannot be read as a
 * command-line option, and is unique, even on case-insensitive file systems. The result is deterministic.
 */
export function safeFileNames(names: string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    const plain = plainName(name)
    let safe = fitName(plain, '')
    for (let count = 2; taken.has(safe.toLowerCase()); count += 1) safe = fitName(plain, `-${count}`)
    taken.add(safe.toLowerCase())
    return safe
  })
}

function plainName(name: string): string {
  return (
    name
      // Including zero-width marks: nobody can see or type them, and some reverse the writing direction.
      .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '')
      // Before the next step, since it turns one Greek accent into a backtick.
      .normalize('NFC')
      // Shells interpret the last three even within double quotes, and agents write such names into commands.
      .replaceAll(/[/\\`"$]/g, '-')
      // Some systems put narrow and no-break spaces into names, which an agent would type as plain ones.
      .replaceAll(/\p{Zs}+/gu, ' ')
      .replace(/^[.\- ]+/, '')
      .trimEnd()
  )
}

/** Contract: the extension and the suffix are never cut. */
function fitName(plain: string, suffix: string): string {
  const extension = EXTENSION.exec(plain.slice(-MAX_EXTENSION_LENGTH))?.[0] ?? ''
  const end = `${suffix}${extension}`
  const stem = plain.slice(0, plain.length - extension.length)
  const start = cut(stem, MAX_NAME_LENGTH - end.length, MAX_NAME_BYTES - Buffer.byteLength(end))
  return `${start.replace(/[. ]+$/, '') || 'file'}${end}`
}

function cut(text: string, length: number, bytes: number): string {
  let kept = ''
  let keptBytes = 0
  for (const character of text) {
    keptBytes += Buffer.byteLength(character)
    if (kept.length + character.length > length || keptBytes > bytes) break
    kept += character
  }
  return kept
}
