import type { ComponentChildren, Key } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows rendered beyond the visible ones, at both ends. */
const MARGIN_ROWS = 12

/**
 * A list of any length, of which only the visible rows are in the DOM. Contract: each row is `rowPx` high, and the list
 * scrolls with `main`.
 */
export function WindowList<Row>({
  label,
  rows,
  rowPx,
  isBusy,
  keyOf,
  onNearEnd,
  children,
}: {
  label: string
  rows: Row[]
  rowPx: number
  isBusy: boolean
  keyOf: (row: Row) => Key
  /** Called when the end of the list is near. */
  onNearEnd: () => void
  children: (row: Row) => ComponentChildren
}) {
  const list = useRef<HTMLUListElement>(null)
  const [seen, setSeen] = useState({ first: 0, last: 3 * MARGIN_ROWS })
  const look = (): void => {
    const { current } = list
    const frame = current?.closest('main')
    if (!current || !frame) return
    const above = frame.getBoundingClientRect().top - current.getBoundingClientRect().top
    const first = Math.max(0, Math.floor(above / rowPx) - MARGIN_ROWS)
    const last = Math.ceil((above + frame.clientHeight) / rowPx) + MARGIN_ROWS
    setSeen((before) => (before.first === first && before.last === last ? before : { first, last }))
    if (last >= rows.length) onNearEnd()
  }
  useLayoutEffect(() => {
    const frame = list.current?.closest('main')
    look()
    frame?.addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      frame?.removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  })
  const shown = rows.slice(seen.first, seen.last)
  useLayoutEffect(() => {
    if (!list.current) return
    list.current.style.paddingTop = `${Math.min(seen.first, rows.length) * rowPx}px`
    list.current.style.paddingBottom = `${Math.max(0, rows.length - seen.last) * rowPx}px`
  }, [seen, rows.length])
  return (
    <ul ref={list} class="window-list" aria-label={label} aria-busy={isBusy}>
      {shown.map((row) => (
        <li key={keyOf(row)}>{children(row)}</li>
      ))}
    </ul>
  )
}
