import { useEffect, useState } from 'preact/hooks'
import type { UploadedFile } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { formatBytes } from '../format.js'
import { Icon } from '../parts/icon.js'
import { useAction } from '../use-action.js'

/** The gateway's limit for one message. */
export const MOST_FILES = 10

/** Files chosen but not sent yet. */
export function ChosenFiles({ files, onRemove }: { files: File[]; onRemove: (file: File) => void }) {
  if (files.length === 0) return null
  return (
    <ul class="composer-files" aria-label="Attachments">
      {files.map((file, index) => (
        <li key={index}>
          <Icon name="attach" />
          {file.name} <span class="muted">{formatBytes(file.size)}</span>
          <button
            type="button"
            class="quiet icon-only"
            aria-label={`Remove ${file.name}`}
            onClick={() => onRemove(file)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Uploads all files of a message. */
export async function upload(conversationId: string, files: File[]): Promise<string[]> {
  const ids: string[] = []
  for (const file of files) ids.push((await api.conversations.upload(conversationId, file.name, file)).id)
  return ids
}

const PICTURES = /^image\/(png|jpeg|gif|webp)$/
/** Larger pictures are loaded on request. */
const SHOWN_BYTES = 2_000_000

/** Files sent with a message: pictures are shown, the rest can be downloaded. */
export function SentFiles({ conversationId, files }: { conversationId: string; files: UploadedFile[] }) {
  if (files.length === 0) return null
  return (
    <ul class="sent-files" aria-label="Attachments">
      {files.map((file) => (
        <li key={file.id}>
          {PICTURES.test(file.media_type) && file.size <= SHOWN_BYTES ? (
            <Picture conversationId={conversationId} file={file} />
          ) : (
            <Download conversationId={conversationId} file={file} />
          )}
        </li>
      ))}
    </ul>
  )
}

function Picture({ conversationId, file }: { conversationId: string; file: UploadedFile }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    let made: string | undefined
    let isLeft = false
    api.conversations.file(conversationId, file.id).then(
      (blob) => {
        if (isLeft) return
        made = URL.createObjectURL(blob)
        setUrl(made)
      },
      () => undefined, // Its name is shown instead.
    )
    return () => {
      isLeft = true
      if (made !== undefined) URL.revokeObjectURL(made)
    }
  }, [conversationId, file.id])
  return url === undefined ? (
    <Download conversationId={conversationId} file={file} />
  ) : (
    <img src={url} alt={file.name} title={file.name} />
  )
}

function Download({ conversationId, file }: { conversationId: string; file: UploadedFile }) {
  const { run, isBusy, error } = useAction()
  const save = async (): Promise<void> => {
    const url = URL.createObjectURL(await api.conversations.file(conversationId, file.id))
    const link = document.createElement('a')
    link.href = url
    link.download = file.name
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" class="quiet" disabled={isBusy} title={error ?? 'Download'} onClick={() => void run(save)}>
      <Icon name="attach" />
      {file.name} <span class="muted">{error === undefined ? formatBytes(file.size) : 'no longer available'}</span>
    </button>
  )
}
