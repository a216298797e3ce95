import { useEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../use-action.js'
import { type Draft, drafts } from './drafts.js'
import { problemOf } from './message-problem.js'

/**
 * Where one writes. `draftId` names what is kept of it. Contract of `send`: settles when the gateway has the message;
 * until then, and when it rejects, the text stays.
 */
export function Composer({
  draftId,
  placeholder,
  send,
}: {
  draftId: string
  placeholder: string
  send: (draft: Draft) => Promise<void>
}) {
  const [draft, setDraft] = useState(() => drafts.get(draftId))
  const [problem, setProblem] = useState<string>()
  const { run, isBusy, error } = useAction()
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => field.current?.focus(), [])
  const write = (text: string): void => {
    setDraft(drafts.change(draftId, text))
    setProblem(undefined)
  }
  const submit = async (): Promise<void> => {
    if (draft.text.trim() === '' || isBusy) return
    const why = problemOf(draft.text)
    setProblem(why)
    if (why === undefined && (await run(() => send(draft)))) write('')
    field.current?.focus()
  }
  const words = problem ?? error
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      {words !== undefined && (
        <p class="note error" role="alert">
          {words}
        </p>
      )}
      <textarea
        ref={field}
        rows={2}
        aria-label="Message"
        aria-describedby="composer-keys"
        placeholder={placeholder}
        value={draft.text}
        readOnly={isBusy}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void submit()
        }}
      />
      <div class="composer-end">
        <span id="composer-keys" class="muted">
          Enter sends, Shift+Enter begins a line
        </span>
        <button type="submit" class="primary" disabled={isBusy || draft.text.trim() === ''}>
          {isBusy ? 'Sending…' : 'Send'}
        </button>
      </div>
    </form>
  )
}
