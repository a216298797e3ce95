const LONGEST_NAME = 100
/** File systems count bytes, and take 255 of them. */
const LONGEST_NAME_BYTES = 240
/** With its dot. What is longer is part of the name. */
const LONGEST_EXTENSION = 16
const EXTENSION = /\.[\p{L}\d]+$/u

/**
 * Names for files, made of those that people gave them.
 *
 * Contract: whatever comes in, each is one plain name that stays in its directory, is not hidden, is no option of a
 * command, and is unlike the others, also where the file system takes `A` for `a`. The same names give the same.
 */
export function safeFileNames(names: string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    const plain = plainName(name)
    let safe = fitted(plain, '')
    for (let count = 2; taken.has(safe.toLowerCase()); count += 1) safe = fitted(plain, `-${count}`)
    taken.add(safe.toLowerCase())
    return safe
  })
}

function plainName(name: string): string {
  return (
    name
      // Also marks without width: nobody can see or type them, and some turn the direction of writing round.
      .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '')
      // Before the next step: one Greek accent becomes a backtick by it.
      .normalize('NFC')
      // A shell acts on the last three within double quotes, too, and an agent writes such names into commands.
      .replaceAll(/[/\\`"$]/g, '-')
      // Systems put narrow and unbreakable spaces into names, which an agent would type as plain ones.
      .replaceAll(/\p{Zs}+/gu, ' ')
      .replace(/^[.\- ]+/, '')
      .trimEnd()
  )
}

/** Contract: the extension and the suffix stay whole. */
function fitted(plain: string, suffix: string): string {
  const extension = EXTENSION.exec(plain.slice(-LONGEST_EXTENSION))?.[0] ?? ''
  const end = `${suffix}${extension}`
  const stem = plain.slice(0, plain.length - extension.length)
  const start = cut(stem, LONGEST_NAME - end.length, LONGEST_NAME_BYTES - Buffer.byteLength(end))
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
