import { useMemo } from 'preact/hooks'
import { diffOf } from '../../../src/core/line-diff.js'
import { type PatchLine, patchLines } from '../patch.js'

const SIGNS = { same: ' ', added: '+', removed: '-', gap: '' }

/** Lines with their signs and, if known, line numbers. */
export function DiffLines({ lines }: { lines: PatchLine[] }) {
  const hasNumbers = lines.some(({ before, after }) => before !== undefined || after !== undefined)
  return (
    <pre class={hasNumbers ? 'code diff numbered' : 'code diff'} tabIndex={0}>
      {lines.map(({ kind, text, before, after }, index) => (
        <span key={index} class={`line ${kind}`}>
          {hasNumbers && (
            <span class="line-number" aria-hidden="true">
              {`${pad(kind === 'added' ? after : before)} ${pad(kind === 'removed' ? undefined : after)}`}
            </span>
          )}
          {kind === 'gap' ? `${text || '…'}\n` : `${SIGNS[kind]} ${text}\n`}
        </span>
      ))}
    </pre>
  )
}

const DIGITS = 4

function pad(number: number | undefined): string {
  return String(number ?? '').padStart(DIGITS)
}

/** The diff of two excerpts. Their position in the file is unknown, so there are no line numbers. */
export function Diff({ before, after }: { before: string; after: string }) {
  return <DiffLines lines={useMemo(() => diffOf(before, after), [before, after])} />
}

export function Patch({ patch }: { patch: string }) {
  return <DiffLines lines={useMemo(() => patchLines(patch), [patch])} />
}
