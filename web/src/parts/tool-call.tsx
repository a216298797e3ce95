import { diffOf } from '../../../src/core/line-diff.js'
import { type FileChange, fileChangesOf } from '../../../src/core/tool-input.js'
import { countLines, patchLines } from '../patch.js'
import type { ToolBlock } from '../run-model.js'
import { toolLabel } from '../tool-label.js'
import { type Folds, useFold } from '../use-fold.js'
import { Cut } from './cut.js'
import { Icon } from './icon.js'
import { Duration } from './numbers.js'
import { ToolInput } from './tool-input.js'

const SHOWN_CHARACTERS = 8_000

/** A tool call: one line, with input and output below. Contract: folded details are not in the DOM. */
export function ToolCall({ block, folds }: { block: ToolBlock; folds: Folds }) {
  const { key, tool, input, startedAt, result } = block
  const changes = fileChangesOf(tool, input)
  const fold = useFold(folds, key, changes.length > 0)
  const { icon, action, subject } = toolLabel(tool, input)
  const state = result ? (result.isError ? 'failed' : 'done') : 'going'
  return (
    <details class={`tool ${state}`} {...fold}>
      <summary>
        <Icon name={icon} />
        <span class="tool-name" title={tool}>
          {subject === '' ? action : `${action}:`}
        </span>
        <code class="tool-subject">{subject}</code>
        {changes.length > 0 && <ChangeCount changes={changes} />}
        <span class="tool-state">
          {state === 'failed' && 'failed, '}
          {state === 'going' && <span class="mark running" />}
          <Duration from={startedAt} {...(result && { until: result.endedAt })} />
        </span>
      </summary>
      {fold.open && (
        <div class="tool-body">
          <ToolInput tool={tool} input={input} isUnderItsPath={changes.length === 1} />
          {result && result.output !== '' && changes.length === 0 && (
            <Cut text={result.output} characters={SHOWN_CHARACTERS}>
              {(text) => (
                <pre class={`code wrapped ${result.isError ? 'bad' : ''}`} tabIndex={0}>
                  {text}
                </pre>
              )}
            </Cut>
          )}
          {result?.isError && changes.length > 0 && <p class="bad small">{result.output.slice(0, SHOWN_CHARACTERS)}</p>}
        </div>
      )}
    </details>
  )
}

function ChangeCount({ changes }: { changes: FileChange[] }) {
  const lines = changes.flatMap((change) =>
    change.kind === 'patch' ? patchLines(change.patch) : diffOf(change.before, change.after),
  )
  return <LineCount {...countLines(lines)} />
}

/** As "+3 −1". */
export function LineCount({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="line-count">
      <span class="good">+{added}</span> <span class="bad">−{removed}</span>
    </span>
  )
}
