import { useMemo } from 'preact/hooks'
import { markdownNodes } from '../markdown.js'
import { Cut } from './cut.js'

const SHOWN_CHARACTERS = 30_000

/** Text from an agent or a person. `keeps` says which part of a long text is shown. */
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
