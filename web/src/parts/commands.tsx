import type { ComponentChildren } from 'preact'

/** Commands to copy into a terminal. */
export function Commands({ children }: { children: ComponentChildren }) {
  return <pre class="code wrapped">{children}</pre>
}
