import { useMemo } from 'preact/hooks'
import { diffOf } from '../../../src/core/line-diff.js'

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
