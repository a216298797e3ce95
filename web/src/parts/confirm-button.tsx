import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Asks for confirmation in place, before something that cannot be undone. */
export function ConfirmButton({
  children,
  question,
  onConfirm,
  disabled = false,
}: {
  children: ComponentChildren
  /** As "Remove it?" */
  question: string
  onConfirm: () => void
  disabled?: boolean
}) {
  const [isAsking, setIsAsking] = useState(false)
  const yes = useRef<HTMLButtonElement>(null)
  // Only once: focus that has moved on to "No" must stay there when the page is redrawn.
  useLayoutEffect(() => yes.current?.focus(), [isAsking])
  if (!isAsking) {
    return (
      <button type="button" disabled={disabled} onClick={() => setIsAsking(true)}>
        {children}
      </button>
    )
  }
  return (
    <span class="confirm" role="group" aria-label={question}>
      <span>{question}</span>
      <button
        ref={yes}
        type="button"
        class="danger"
        disabled={disabled}
        onClick={() => {
          setIsAsking(false)
          onConfirm()
        }}
      >
        Yes
      </button>
      <button type="button" onClick={() => setIsAsking(false)}>
        No
      </button>
    </span>
  )
}
