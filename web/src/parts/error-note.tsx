/** What went wrong, and a way to try again. */
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

/** The same, next to what was clicked. */
export function ErrorWords({ words }: { words: string | undefined }) {
  if (words === undefined) return null
  return (
    <span class="bad" role="alert">
      {words}
    </span>
  )
}
