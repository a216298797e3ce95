import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { formatCount } from '../format.js'

/** As much as a browser can show without becoming slow. */
const LONGEST = 400_000

/**
 * Shows part of a long text, and the rest on request. `keeps` says which part: the end, for text that still grows.
 * Contract: the whole text is bounded as well.
 */
export function Cut({
  text,
  characters,
  keeps = 'start',
  children,
}: {
  text: string
  characters: number
  keeps?: 'start' | 'end'
  children: (text: string) => ComponentChildren
}) {
  const [isWhole, setIsWhole] = useState(false)
  const most = isWhole ? LONGEST : characters
  const left = text.length - most
  if (left <= 0) return <>{children(text)}</>
  const words = `${formatCount(left)} ${keeps === 'end' ? 'earlier' : 'more'} characters not shown.`
  const note = (
    <p class="cut">
      {words}{' '}
      {!isWhole && (
        <button type="button" class="quiet" onClick={() => setIsWhole(true)}>
          Show all
        </button>
      )}
    </p>
  )
  return (
    <>
      {keeps === 'end' && note}
      {children(keeps === 'end' ? text.slice(-most) : text.slice(0, most))}
      {keeps === 'start' && note}
    </>
  )
}
