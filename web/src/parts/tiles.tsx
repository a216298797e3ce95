import type { ComponentChildren } from 'preact'

/** Key numbers, at the top of a page. */
export function Tiles({ children }: { children: ComponentChildren }) {
  return <dl class="tiles">{children}</dl>
}

export function Tile({
  title,
  tone,
  children,
}: {
  title: string
  tone?: 'bad' | 'warn' | undefined
  children: ComponentChildren
}) {
  return (
    <div class="tile">
      <dt>{title}</dt>
      <dd class={tone}>{children}</dd>
    </div>
  )
}
