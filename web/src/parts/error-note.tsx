/** What went wrong, in words, and a way to try again. */
export function ErrorNote({ words, onRetry }: { words: string; onRetry?: () => void }) {
  return (
    <div class="note error" role="alert">
      <p>{words}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** The same beside what was clicked, once there is something to say. */
export function ErrorWords({ words }: { words: string | undefined }) {
  if (words === undefined) return null
  return (
    <span class="bad" role="alert">
      {words}
    </span>
  )
}
