import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

/** Connects a control with its label, hint and problem. */
export interface ControlProps {
  id: string
  'aria-describedby'?: string
  'aria-invalid'?: true
}

/** A control with its label, a hint, and the problem that the gateway reported. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string
  hint?: ComponentChildren
  problem?: string | undefined
  children: (control: ControlProps) => ComponentChildren
}) {
  const id = useId()
  const described = [hint !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described.length > 0 && { 'aria-describedby': described.join(' ') }),
        ...(problem !== undefined && { 'aria-invalid': true }),
      })}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem !== undefined && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  )
}

/** A text field, or with `step` one for a positive number. */
export function TextField({
  value,
  isRequired = false,
  isProse = false,
  step,
  onInput,
  ...field
}: {
  label: string
  hint?: ComponentChildren
  problem: string | undefined
  value: string
  isRequired?: boolean
  /** Turns the browser's spell checking on. */
  isProse?: boolean
  /** Makes it a number. */
  step?: '1' | 'any'
  onInput: (value: string) => void
}) {
  return (
    <Field {...field}>
      {(control) => (
        <input
          {...control}
          required={isRequired}
          spellcheck={isProse}
          {...(step !== undefined && { type: 'number', min: '1', step })}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}
