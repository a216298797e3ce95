import type { ComponentChildren } from 'preact'

/** A page with its heading, and `actions` next to it. */
export function Page({
  title,
  actions,
  isNarrow = false,
  children,
}: {
  title: string
  actions?: ComponentChildren
  /** For forms and text. */
  isNarrow?: boolean
  children: ComponentChildren
}) {
  return (
    <div class={isNarrow ? 'page narrow' : 'page'}>
      <div class="page-head">
        <h1>{title}</h1>
        {actions}
      </div>
      {children}
    </div>
  )
}
