import type { ToolBlock } from '../run-model.js'
import { fileChangesOf, subjectOf } from '../../../src/core/tool-input.js'
import { type Folds, useFold } from '../use-fold.js'
import { Cut } from './cut.js'
import { Duration } from './numbers.js'
import { ToolInput } from './tool-input.js'

const SHOWN_CHARACTERS = 8_000

/** A use of a tool: one line, and below it what went in and came out. Contract: what is folded is not in the page. */
export function ToolCall({ block, folds }: { block: ToolBlock; folds: Folds }) {
  const { key, tool, input, startedAt, result } = block
  const fold = useFold(folds, key, fileChangesOf(tool, input).length > 0)
  const state = result ? (result.isError ? 'failed' : 'done') : 'going'
  return (
    <details class={`tool ${state}`} {...fold}>
      <summary>
        <span class={result ? 'tool-name' : 'tool-name working'}>{tool}</span>
        <code class="tool-subject">{subjectOf(input)}</code>
        <span class="tool-state">
          {state === 'failed' && 'failed, '}
          <Duration from={startedAt} {...(result && { until: result.endedAt })} />
        </span>
      </summary>
      {fold.open && (
        <div class="tool-body">
          <ToolInput tool={tool} input={input} />
          {result && result.output !== '' && (
            <Cut text={result.output} characters={SHOWN_CHARACTERS}>
              {(text) => (
                <pre class={`code wrapped ${result.isError ? 'bad' : ''}`} tabIndex={0}>
                  {text}
                </pre>
              )}
            </Cut>
          )}
        </div>
      )}
    </details>
  )
}
