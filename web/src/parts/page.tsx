import type { ComponentChildren } from 'preact'

/** A page with its heading; `actions` stand beside that. */
export function Page({
  title,
  actions,
  children,
}: {
  title: string
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <>
      <div class="page-head">
        <h1>{title}</h1>
        {actions}
      </div>
      {children}
    </>
  )
}
