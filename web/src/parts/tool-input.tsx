import { Fragment } from 'preact'
import { type FileChange, fileChangesOf } from '../../../src/core/tool-input.js'
import type { PatchLine } from '../patch.js'
import { Code } from './code.js'
import { Cut } from './cut.js'
import { Diff, DiffLines, Patch } from './diff.js'

const SHOWN_CHARACTERS = 8_000

/** A tool's input: file changes as diffs, a command as code, everything else as names and values. */
export function ToolInput({
  tool,
  input,
  isUnderItsPath = false,
}: {
  tool: string
  input: Record<string, unknown>
  /** The path of its only change is already shown above. */
  isUnderItsPath?: boolean
}) {
  const changes = fileChangesOf(tool, input)
  if (changes.length > 0) {
    return (
      <>
        {changes.map((change, index) => (
          <FileChangeView key={index} change={change} hasPath={!isUnderItsPath} />
        ))}
      </>
    )
  }
  const { command, ...others } = input
  const hasCommand = typeof command === 'string'
  const rest = hasCommand ? others : input
  return (
    <>
      {hasCommand && (
        <Cut text={command} characters={SHOWN_CHARACTERS}>
          {(text) => <Code text={text} language="bash" />}
        </Cut>
      )}
      {Object.values(rest).every(isShort) ? (
        <dl class="facts">
          {Object.entries(rest).map(([name, value]) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{String(value)}</dd>
            </Fragment>
          ))}
        </dl>
      ) : (
        <Cut text={JSON.stringify(rest, null, 2)} characters={SHOWN_CHARACTERS}>
          {(text) => <Code text={text} language="json" />}
        </Cut>
      )}
    </>
  )
}

function isShort(value: unknown): boolean {
  return ['number', 'boolean'].includes(typeof value) || (typeof value === 'string' && value.length < 200)
}

function FileChangeView({ change, hasPath }: { change: FileChange; hasPath: boolean }) {
  return (
    <figure class="change">
      {hasPath && <figcaption>{change.path}</figcaption>}
      {change.kind === 'patch' ? (
        <Patch patch={change.patch} />
      ) : change.before === '' ? (
        <Cut text={change.after} characters={SHOWN_CHARACTERS}>
          {(text) => <DiffLines lines={addedLines(text)} />}
        </Cut>
      ) : (
        <Diff before={change.before} after={change.after} />
      )}
    </figure>
  )
}

function addedLines(text: string): PatchLine[] {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => ({ kind: 'added', text: line }))
}
