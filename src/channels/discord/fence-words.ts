import { type Fence, findOpener, isCloser } from '../markdown-lines.js'

/** What may stand behind the language of a fence: `title=x`, `{1,3}`, `[x.ts]`, the name of a file. */
const ATTRIBUTE = /[={}[\]:]|\.\w+$/

/**
 * Puts words that an agent wrote on the line of a fence onto a line of their own: in Discord there is no place for them.
 * Behind a marker that closes they are text; behind one that opens they are the first line of the code.
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
