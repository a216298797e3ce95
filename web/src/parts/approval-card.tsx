import { useState } from 'preact/hooks'
import type { Approval, ApprovalAnswer } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { useAction } from '../use-action.js'
import { ErrorNote } from './error-note.js'
import { Time } from './numbers.js'
import { ToolInput } from './tool-input.js'

/** A question of an agent, and what can be answered. */
export function ApprovalCard({ approval, onAnswered }: { approval: Approval; onAnswered: () => void }) {
  const { run, isBusy, error } = useAction()
  const [isRefusing, setIsRefusing] = useState(false)
  const [reason, setReason] = useState('')
  const mayAnswer = useMe().scopes.includes('run')
  const answer = (given: ApprovalAnswer): void => {
    void run(async () => {
      try {
        await api.approvals.answer(approval.id, given)
      } finally {
        // Also when it came too late: then somebody else has answered.
        onAnswered()
      }
    })
  }
  return (
    <section class="approval" aria-label={`${approval.agent_provider} asks`}>
      <p>
        <strong>{approval.tool}</strong> needs an answer. Without one it counts as refused{' '}
        <Time at={approval.deadline} />.
      </p>
      <ToolInput tool={approval.tool} input={approval.input} />
      {error !== undefined && <ErrorNote words={error} />}
      {mayAnswer && !isRefusing && (
        <div class="row">
          <button type="button" class="primary" disabled={isBusy} onClick={() => answer({ decision: 'allow' })}>
            Allow
          </button>
          {approval.can_remember && (
            <button type="button" disabled={isBusy} onClick={() => answer({ decision: 'allow', remember: 'this' })}>
              Always allow this
            </button>
          )}
          <button type="button" disabled={isBusy} onClick={() => setIsRefusing(true)}>
            Deny…
          </button>
        </div>
      )}
      {mayAnswer && isRefusing && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            answer({ decision: 'deny', ...(reason.trim() !== '' && { message: reason.trim() }) })
          }}
        >
          <label>
            What the agent is told, if anything
            <input value={reason} maxLength={2000} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
          <div class="row">
            <button type="submit" class="danger" disabled={isBusy}>
              Deny
            </button>
            <button type="button" onClick={() => setIsRefusing(false)}>
              Back
            </button>
          </div>
        </form>
      )}
    </section>
  )
}
