import type { ComponentChildren } from 'preact'

/** To be copied into a terminal. */
export function Commands({ children }: { children: ComponentChildren }) {
  return <pre class="code wrapped">{children}</pre>
}
