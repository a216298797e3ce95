import { diffLines } from 'diff'
import { useMemo } from 'preact/hooks'

const MOST_LINES = 2_000
/** Further apart, the texts are shown one after the other: to compare them would hold up the page. */
const MOST_CHANGES = 500
const LONGEST_LINE = 1_000
const CONTEXT_LINES = 3

interface Line {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string
}

/** What a change makes of a text, line by line. */
export function Diff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => diffOf(before, after), [before, after])
  return (
    <pre class="code diff" tabIndex={0}>
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`line ${kind}`}>
          {`${SIGNS[kind]}${text}\n`}
        </span>
      ))}
    </pre>
  )
}

const SIGNS = { same: '  ', added: '+ ', removed: '- ', gap: '' }

/** Contract: bounded, whatever the texts are. */
export function diffOf(before: string, after: string): Line[] {
  const changes = diffLines(before, after, { maxEditLength: MOST_CHANGES }) ?? [
    { value: before, removed: true, added: false },
    { value: after, added: true, removed: false },
  ]
  const lines = changes.flatMap(({ value, added, removed }, index) => {
    const texts = value.replace(/\n$/, '').split('\n').map(cutLine)
    if (added || removed) return texts.map((text): Line => ({ kind: added ? 'added' : 'removed', text }))
    return contextOf(texts, index === 0, index === changes.length - 1)
  })
  return lines.length <= MOST_LINES
    ? lines
    : [...lines.slice(0, MOST_LINES), { kind: 'gap', text: `… ${lines.length - MOST_LINES} more lines` }]
}

function cutLine(text: string): string {
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)} …` : text
}

/** Of what stays the same, only what is near a change. */
function contextOf(texts: string[], isFirst: boolean, isLast: boolean): Line[] {
  const start = isFirst ? 0 : CONTEXT_LINES
  const end = isLast ? 0 : CONTEXT_LINES
  const same = (text: string): Line => ({ kind: 'same', text })
  if (texts.length <= start + end + 1) return texts.map(same)
  const left = texts.length - start - end
  return [
    ...texts.slice(0, start).map(same),
    { kind: 'gap', text: `… ${left} lines` },
    ...texts.slice(texts.length - end).map(same),
  ]
}
