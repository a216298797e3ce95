import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** Near enough to the end to be meant as there. */
const NEAR_PX = 24

/** A part that scrolls by itself, and stays at its end while that grows, unless one has scrolled up. */
export function StickToEnd({ label, children }: { label: string; children: ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    if (frame.current && isAtEnd.current) frame.current.scrollTop = frame.current.scrollHeight
  })
  return (
    <div
      ref={frame}
      class="stick"
      role="region"
      aria-label={label}
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX
      }}
    >
      {children}
    </div>
  )
}
