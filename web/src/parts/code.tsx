import { highlight } from '../highlight.js'

/** A code block. Contract: uses no hooks, so that Markdown is only nodes. */
export function Code({ text, language = '' }: { text: string; language?: string }) {
  return (
    // It scrolls, so it must be reachable by keyboard.
    <pre class="code" tabIndex={0}>
      <code>{highlight(text, language)}</code>
    </pre>
  )
}
