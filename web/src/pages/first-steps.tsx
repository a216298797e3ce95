import { ErrorNote } from '../parts/error-note.js'
import { Page } from '../parts/page.js'
import { StepList } from '../parts/step-list.js'
import { useSetup } from '../use-setup.js'

export function FirstStepsPage() {
  const { value: state, error, isLoading, reload } = useSetup()
  return (
    <Page
      title="First steps"
      actions={
        <button type="button" disabled={isLoading} onClick={reload}>
          Look again
        </button>
      }
    >
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!state && isLoading && <p class="muted">Looking at what is there…</p>}
      {state && <StepList state={state} />}
    </Page>
  )
}
