import { useState } from 'preact/hooks'
import type { ChangedFile } from '../../../src/client/aetheel-client.js'
import { Diff, Patch } from '../parts/diff.js'
import { Icon } from '../parts/icon.js'
import { Time } from '../parts/numbers.js'
import { LineCount } from '../parts/tool-call.js'

/** What the agent changed in a conversation, by file. */
export function ChangesPanel({ files, onClose }: { files: ChangedFile[]; onClose?: () => void }) {
  const added = files.reduce((sum, file) => sum + file.added, 0)
  const removed = files.reduce((sum, file) => sum + file.removed, 0)
  return (
    <aside class="rail" aria-label="Changes">
      <header>
        <h2>
          {files.length} {files.length === 1 ? 'file' : 'files'} changed
        </h2>
        <LineCount added={added} removed={removed} />
        {onClose && (
          <button type="button" class="quiet icon-only" aria-label="Hide changes" onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      <div class="rail-files">
        {files.map((file, index) => (
          <File key={file.path} file={file} isOpenAtFirst={index === 0} />
        ))}
      </div>
    </aside>
  )
}

function File({ file, isOpenAtFirst }: { file: ChangedFile; isOpenAtFirst: boolean }) {
  const [isOpen, setIsOpen] = useState(isOpenAtFirst)
  const { path, added, removed, edits } = file
  const at = path.lastIndexOf('/') + 1
  return (
    <details class="file" open={isOpen} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary title={path}>
        <Icon name="chevron" />
        <span class="file-path">
          <span class="muted">{path.slice(0, at)}</span>
          {path.slice(at)}
        </span>
        <LineCount added={added} removed={removed} />
      </summary>
      {isOpen &&
        edits.map((edit, index) => (
          <div key={index} class="edit">
            <p class="muted small">
              <Time at={edit.at} />
              {edit.is_cut && ', truncated'}
            </p>
            {edit.patch !== null ? (
              <Patch patch={edit.patch} />
            ) : edit.new !== null ? (
              <Diff before={edit.old ?? ''} after={edit.new} />
            ) : (
              <p class="muted small">The agent did not report what it changed in this file.</p>
            )}
          </div>
        ))}
    </details>
  )
}
