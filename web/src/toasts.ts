// Brief notifications, from anywhere on the page.

import { useEffect, useState } from 'preact/hooks'

export interface Toast {
  id: number
  title: string
  /** The subject, such as a conversation's title. */
  what?: string | undefined
  /** Where to see more. */
  href?: string
}

/** Nobody can read more at once. */
const MOST = 4
const SHOWN_MS = 8_000

let toasts: Toast[] = []
let lastId = 0
const listeners = new Set<(shown: Toast[]) => void>()

function show(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener(toasts)
}

export function toast(told: Omit<Toast, 'id'>): void {
  const id = ++lastId
  show([...toasts, { id, ...told }].slice(-MOST))
  setTimeout(() => dismiss(id), SHOWN_MS)
}

export function dismiss(id: number): void {
  show(toasts.filter((shown) => shown.id !== id))
}

export function useToasts(): Toast[] {
  const [shown, setShown] = useState(toasts)
  useEffect(() => {
    listeners.add(setShown)
    return () => {
      listeners.delete(setShown)
    }
  }, [])
  return shown
}
