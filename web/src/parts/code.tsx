import { highlight } from '../highlight.js'

/** A piece of code. Contract: without hooks, so that Markdown is nodes alone. */
export function Code({ text, language = '' }: { text: string; language?: string }) {
  return (
    // It can be scrolled, so the keyboard must reach it.
    <pre class="code" tabIndex={0}>
      <code>{highlight(text, language)}</code>
    </pre>
  )
}
