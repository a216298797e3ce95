import { type Fence, findOpener, isCloser } from '../markdown-lines.js'

/** What may follow the language of a fence: `title=x`, `{1,3}`, `[x.ts]`, a file name. */
const ATTRIBUTE = /[={}[\]:]|\.\w+$/

/**
 * Moves words that an agent wrote on a fence's line onto a line of their own, since Discord has no place for them.
 * After a closing marker they are text; after an opening one they are the first line of the code.
 */
export function separateFenceWords(text: string): string {
  if (!text.includes('```')) return text
  let fence: Fence | undefined
  const lines = text.split('\n').map((line) => {
    if (!fence) {
      fence = findOpener(line)
      return fence?.quote === '' && isSentence(fence.info)
        ? `${line.slice(0, line.indexOf(fence.marker))}${fence.marker}\n${fence.info}`
        : line
    }
    if (isCloser(line, fence)) {
      fence = undefined
      return line
    }
    const [, marker = '', words = ''] = /^( {0,3}`{3,})[ \t]+(\S.*)$/s.exec(line) ?? []
    if (marker.trim() !== fence.marker || fence.quote !== '' || words.includes('`') || !isSentence(words)) return line
    fence = undefined
    return `${marker}\n${words}`
  })
  return lines.join('\n')
}

function isSentence(words: string): boolean {
  const [, ...rest] = words.trim().split(/\s+/)
  return rest.length > 0 && !rest.some((word) => ATTRIBUTE.test(word))
}
