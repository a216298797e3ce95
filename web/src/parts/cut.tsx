import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { formatCount } from '../format.js'

/** What a browser shows without falling asleep. */
const LONGEST = 400_000

/**
 * A text of which a part is shown until one asks for all. `keeps` is the part: the end of what still grows. Contract:
 * also all of it is bounded.
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
  const words = `${formatCount(left)} more characters ${keeps === 'end' ? 'before' : 'after'} this.`
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
