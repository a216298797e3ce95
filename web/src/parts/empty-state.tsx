import type { ComponentChildren } from 'preact'

/** Nothing is here, and what would make that otherwise. */
export function EmptyState({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}
