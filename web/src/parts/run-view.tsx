import { Component } from 'preact'
import { useState } from 'preact/hooks'
import type { Block, RunModel, TextBlock } from '../run-model.js'
import { type Folds, useFold } from '../use-fold.js'
import { Markdown } from './markdown.js'
import { ToolCall } from './tool-call.js'

const SHOWN_BLOCKS = 40

export type ShownRun = Pick<RunModel, 'blocks' | 'dropped' | 'folds'>

/** A run's text, thinking and tool calls; at first only the most recent. */
export function RunView({ model }: { model: ShownRun }) {
  const [most, setMost] = useState(SHOWN_BLOCKS)
  const { blocks, dropped, folds } = model
  const shown = blocks.slice(-most)
  const left = blocks.length - shown.length
  return (
    <div class="run">
      {left > 0 ? (
        <button type="button" class="quiet" onClick={() => setMost(most + SHOWN_BLOCKS)}>
          Show earlier ({left + dropped})
        </button>
      ) : (
        dropped > 0 && <p class="cut">{dropped} earlier steps not shown.</p>
      )}
      {shown.map((block) => (
        <BlockView key={block.key} block={block} folds={folds} />
      ))}
    </div>
  )
}

/** Re-renders only when its block is replaced, since most of a run does not change. */
class BlockView extends Component<{ block: Block; folds: Folds }> {
  override shouldComponentUpdate({ block }: { block: Block }): boolean {
    return block !== this.props.block
  }

  override render({ block, folds }: { block: Block; folds: Folds }) {
    switch (block.kind) {
      case 'text':
        return <Markdown text={block.text} keeps="end" />
      case 'thinking':
        return <Thinking block={block} folds={folds} />
      case 'stderr':
        return <pre class="code wrapped bad">{block.text.slice(-SHOWN_OUTPUT)}</pre>
      case 'tool':
        return <ToolCall block={block} folds={folds} />
      case 'notice':
        return <p class="notice">{block.text}</p>
      default:
        return <p class="note error">{block.text}</p>
    }
  }
}

const SHOWN_OUTPUT = 8_000

function Thinking({ block: { key, text }, folds }: { block: TextBlock; folds: Folds }) {
  const fold = useFold(folds, key)
  return (
    <details class="thinking" {...fold}>
      <summary>Thinking</summary>
      {fold.open && <Markdown text={text} keeps="end" />}
    </details>
  )
}
