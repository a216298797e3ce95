import { useMemo } from 'preact/hooks'
import { markdownNodes } from '../markdown.js'
import { Cut } from './cut.js'

const SHOWN_CHARACTERS = 30_000

/** A text of an agent or a person. `keeps` is what is shown of a long one. */
export function Markdown({ text, keeps = 'start' }: { text: string; keeps?: 'start' | 'end' }) {
  return (
    <div class="prose">
      <Cut text={text} characters={SHOWN_CHARACTERS} keeps={keeps}>
        {(shown) => <Rendered text={shown} />}
      </Cut>
    </div>
  )
}

function Rendered({ text }: { text: string }) {
  return <>{useMemo(() => markdownNodes(text), [text])}</>
}
