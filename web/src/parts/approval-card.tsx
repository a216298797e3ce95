import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Approval, ApprovalAnswer } from '../../../src/client/aetheel-client.js'
import { agentName } from '../agent-names.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { toolLabel } from '../tool-label.js'
import { useAction } from '../use-action.js'
import { ErrorNote } from './error-note.js'
import { Icon } from './icon.js'
import { Time } from './numbers.js'
import { ToolInput } from './tool-input.js'

/** An agent's question, with buttons to answer it. */
export function ApprovalCard({ approval, onAnswered }: { approval: Approval; onAnswered: () => void }) {
  const { run, isBusy, error } = useAction()
  const [isExplaining, setIsExplaining] = useState(false)
  const mayAnswer = useMe().scopes.includes('run')
  const title = `${agentName(approval.agent_provider)} wants to ${toolLabel(approval.tool, approval.input).wish}`
  const answer = (given: ApprovalAnswer): void => {
    void run(async () => {
      try {
        await api.approvals.answer(approval.id, given)
      } finally {
        // Even after a failure: someone else may have answered first.
        onAnswered()
      }
    })
  }
  return (
    <section class="approval" aria-label={title}>
      <header>
        <Icon name="shield" />
        <strong>{title}</strong>
        <span class="muted">
          denied automatically <Time at={approval.deadline} />
        </span>
      </header>
      <ToolInput tool={approval.tool} input={approval.input} />
      {error !== undefined && <ErrorNote words={error} />}
      {mayAnswer && (
        <div class="row">
          <button type="button" class="primary" disabled={isBusy} onClick={() => answer({ decision: 'allow' })}>
            Allow
          </button>
          <button type="button" disabled={isBusy} onClick={() => answer({ decision: 'deny' })}>
            Deny
          </button>
          {approval.can_remember && (
            <button
              type="button"
              class="quiet"
              disabled={isBusy}
              onClick={() => answer({ decision: 'allow', remember: 'this' })}
            >
              Always allow this
            </button>
          )}
          {!isExplaining && (
            <button type="button" class="quiet" onClick={() => setIsExplaining(true)}>
              Deny with a reason
            </button>
          )}
        </div>
      )}
      {isExplaining && (
        <Reason
          isBusy={isBusy}
          onDeny={(message) => answer({ decision: 'deny', ...(message !== '' && { message }) })}
        />
      )}
    </section>
  )
}

function Reason({ isBusy, onDeny }: { isBusy: boolean; onDeny: (reason: string) => void }) {
  const [reason, setReason] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    field.current?.focus()
    field.current?.form?.scrollIntoView({ block: 'nearest' })
  }, [])
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onDeny(reason.trim())
      }}
    >
      <label>
        What to do instead
        <span class="together">
          <input
            ref={field}
            value={reason}
            maxLength={2000}
            placeholder="Sent to the agent"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
          <button type="submit" disabled={isBusy}>
            Deny and send
          </button>
        </span>
      </label>
    </form>
  )
}
