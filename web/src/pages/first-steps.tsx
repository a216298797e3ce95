import { ErrorNote } from '../parts/error-note.js'
import { Page } from '../parts/page.js'
import { Skeleton } from '../parts/skeleton.js'
import { StepList } from '../parts/step-list.js'
import { useSetup } from '../use-setup.js'

export function FirstStepsPage() {
  const { value: state, error, isLoading, reload } = useSetup()
  return (
    <Page
      title="First steps"
      actions={
        <button type="button" disabled={isLoading} onClick={reload}>
          Refresh
        </button>
      }
    >
      {error !== undefined && <ErrorNote words={error} onRetry={reload} />}
      {!state && isLoading && <Skeleton />}
      {state && <StepList state={state} />}
    </Page>
  )
}
