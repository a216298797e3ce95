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
