/** The end of a text still being written, starting at a line, with its code fences balanced. */
export function tailOf(text: string, limit: number): string {
  const isCut = text.length > limit
  const from = isCut ? startOfLine(text, text.length - limit) : 0
  const opened = isCut ? openFence(text.slice(0, from)) : undefined
  const tail = [isCut ? '…' : '', ...(opened === undefined ? [] : [opened]), text.slice(from)]
    .filter(Boolean)
    .join('\n')
  const open = openFence(tail)
  return open === undefined ? tail : `${tail}\n${markerOf(open)}`
}

function startOfLine(text: string, position: number): number {
  const lineEnd = text.indexOf('\n', position)
  if (lineEnd !== -1 && lineEnd + 1 < text.length) return lineEnd + 1
  // One long line: do not split a surrogate pair.
  return /[\udc00-\udfff]/.test(text.charAt(position)) ? position + 1 : position
}

/** The line that opened the code fence still open at the end of a text. */
function openFence(text: string): string | undefined {
  let open: string | undefined
  for (const [line, marker = '', rest = ''] of text.matchAll(/^ {0,3}(`{3,100}|~{3,100})([^\n]*)$/gm)) {
    if (open === undefined) {
      if (!(marker.startsWith('`') && rest.includes('`'))) open = line
    } else {
      const opening = markerOf(open)
      if (rest.trim() === '' && marker.startsWith(opening)) open = undefined
    }
  }
  // An info string that means something is short.
  return open !== undefined && open.length > 100 ? markerOf(open) : open
}

function markerOf(line: string): string {
  return /`{3,100}|~{3,100}/.exec(line)?.[0] ?? ''
}
