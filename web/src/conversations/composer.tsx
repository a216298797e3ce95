import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { withLocalTimes } from '../../../src/core/local-time.js'
import { Icon } from '../parts/icon.js'
import { Markdown } from '../parts/markdown.js'
import { Option } from '../parts/option.js'
import { useAction } from '../use-action.js'
import { ChosenFiles, MOST_FILES } from './attachments.js'
import { completed } from './completion.js'
import { type Draft, drafts } from './drafts.js'
import { problemOf } from './message-problem.js'
import { type CompletionSources, useCompletions } from './use-completions.js'

/**
 * The message field. `draftId` names the stored draft. Contract of `send`: resolves once the gateway has the message,
 * with the answer if it was a command. Until then, and if it rejects, text and files stay.
 */
export function Composer({
  draftId,
  placeholder,
  sources,
  above,
  beside,
  send,
}: {
  draftId: string
  placeholder: string
  sources: CompletionSources
  /** The choices for a new conversation. */
  above?: ComponentChildren
  /** Before the send button. */
  beside?: ComponentChildren
  send: (draft: Draft, files: File[]) => Promise<string | undefined>
}) {
  const [draft, setDraft] = useState(() => drafts.get(draftId))
  const [problem, setProblem] = useState<string>()
  const [answer, setAnswer] = useState<string>()
  const { run, isBusy, error } = useAction()
  const field = useRef<HTMLTextAreaElement>(null)
  const keys = useId()
  const [caret, setCaret] = useState(0)
  const nextCaret = useRef<number | undefined>(undefined)
  const [files, setFiles] = useState<File[]>([])
  const [isTarget, setIsTarget] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const [isDismissed, setIsDismissed] = useState(false)
  const [chosen, setChosen] = useState(0)
  const { completing, completions } = useCompletions(draft.text, caret, sources)
  const isCompleting = completing !== undefined && completions.length > 0 && !isDismissed && !isBusy
  const at = Math.min(chosen, completions.length - 1)
  useEffect(() => {
    // On a phone, focus would open the keyboard.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [])
  useLayoutEffect(() => {
    if (nextCaret.current === undefined) return
    field.current?.setSelectionRange(nextCaret.current, nextCaret.current)
    nextCaret.current = undefined
  })
  const write = (text: string): void => {
    setDraft(drafts.change(draftId, text))
    setProblem(undefined)
    setIsDismissed(false)
    setChosen(0)
  }
  const isEmpty = draft.text.trim() === '' && files.length === 0
  const attach = (chosenFiles: Iterable<File>): void => {
    const all = [...files, ...chosenFiles]
    setFiles(all.slice(0, MOST_FILES))
    setProblem(all.length > MOST_FILES ? `Attach at most ${MOST_FILES} files.` : undefined)
    field.current?.focus()
  }
  const submit = async (): Promise<void> => {
    if (isEmpty || isBusy) return
    const why = problemOf(draft.text)
    setProblem(why)
    setAnswer(undefined)
    const sent = async (): Promise<void> => {
      const answered = await send(draft, files)
      setAnswer(answered && withLocalTimes(answered, Date.now()))
    }
    if (why === undefined && (await run(sent))) {
      write('')
      setFiles([])
    }
    field.current?.focus()
  }
  const complete = (index: number): void => {
    const completion = completions[index]
    if (!completing || !completion) return
    const next = completed(draft.text, completing, completion.word)
    write(next.text)
    setCaret(next.caret)
    nextCaret.current = next.caret
    field.current?.focus()
  }
  /** Whether the command is already typed in full. */
  const isWhole = (): boolean => completing?.kind === 'command' && completing.query === completions[at]?.word
  /** Whether the suggestions handled the key. */
  const pressInList = ({ key, shiftKey }: KeyboardEvent): boolean => {
    const count = completions.length
    if (key === 'ArrowDown') setChosen((at + 1) % count)
    else if (key === 'ArrowUp') setChosen((at - 1 + count) % count)
    else if (key === 'Escape') setIsDismissed(true)
    else if (key === 'Tab' || (key === 'Enter' && !shiftKey && !isWhole())) complete(at)
    else return false
    return true
  }
  const press = (event: KeyboardEvent): void => {
    if (event.isComposing) return
    const isSending = event.key === 'Enter' && !event.shiftKey
    if (isCompleting && pressInList(event)) event.preventDefault()
    else if (isSending) {
      event.preventDefault()
      void submit()
    }
  }
  const words = problem ?? error
  const list = `${keys}-completions`
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
      {answer !== undefined && (
        <div class="note answered" role="status">
          <Markdown text={answer} />
          <button type="button" class="quiet icon-only" aria-label="Dismiss" onClick={() => setAnswer(undefined)}>
            <Icon name="close" />
          </button>
        </div>
      )}
      <div class={isTarget ? 'composer-box is-target' : 'composer-box'}>
        {above}
        {isCompleting && (
          <div id={list} class="completions" role="listbox" aria-label="Suggestions">
            {completions.map(({ word, note, icon }, index) => (
              <Option
                key={word}
                id={`${list}-${index}`}
                icon={icon}
                isChosen={index === at}
                onPoint={() => setChosen(index)}
                onChoose={() => complete(index)}
              >
                <span>{completing.kind === 'command' ? `/${word}` : word}</span>
                <span class="option-words muted">{note}</span>
              </Option>
            ))}
          </div>
        )}
        <textarea
          ref={field}
          rows={1}
          aria-label="Message"
          aria-describedby={keys}
          aria-autocomplete="list"
          aria-controls={isCompleting ? list : undefined}
          aria-activedescendant={isCompleting ? `${list}-${at}` : undefined}
          placeholder={placeholder}
          value={draft.text}
          readOnly={isBusy}
          onInput={({ currentTarget: { value, selectionStart } }) => {
            write(value)
            setCaret(selectionStart)
          }}
          onSelect={({ currentTarget: { selectionStart } }) => setCaret(selectionStart)}
          onKeyDown={press}
          onDragOver={(event) => {
            if (!event.dataTransfer?.types.includes('Files')) return
            event.preventDefault()
            setIsTarget(true)
          }}
          onDragLeave={() => setIsTarget(false)}
          onDrop={(event) => {
            setIsTarget(false)
            if (!event.dataTransfer || event.dataTransfer.files.length === 0) return
            event.preventDefault()
            attach(event.dataTransfer.files)
          }}
          onPaste={(event) => {
            const pasted = event.clipboardData?.files
            if (!pasted || pasted.length === 0) return
            event.preventDefault()
            attach(pasted)
          }}
        />
        <ChosenFiles files={files} onRemove={(file) => setFiles(files.filter((kept) => kept !== file))} />
        <div class="composer-end">
          <span class="row">
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              aria-label="Files"
              onChange={({ currentTarget }) => {
                attach(currentTarget.files ?? [])
                currentTarget.value = ''
              }}
            />
            <button
              type="button"
              class="quiet icon-only"
              aria-label="Attach files"
              title="Attach files"
              disabled={isBusy}
              onClick={() => picker.current?.click()}
            >
              <Icon name="attach" />
            </button>
            <span id={keys} class="composer-keys">
              <kbd>Enter</kbd> to send, <kbd>Shift+Enter</kbd> for a new line
            </span>
          </span>
          <span class="row">
            {beside}
            <button
              type="submit"
              class="primary icon-only send"
              aria-label={isBusy ? 'Sending…' : 'Send'}
              title="Send"
              disabled={isBusy || isEmpty}
            >
              <Icon name="send" />
            </button>
          </span>
        </div>
      </div>
    </form>
  )
}
