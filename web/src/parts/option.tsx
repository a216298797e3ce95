import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.js'

/** An option in a list that a field controls. Contract: the field keeps the focus. */
export function Option({
  id,
  icon,
  isChosen,
  onChoose,
  onPoint,
  children,
}: {
  id: string
  icon: IconName
  isChosen: boolean
  onChoose: () => void
  onPoint: () => void
  children: ComponentChildren
}) {
  return (
    <button
      type="button"
      id={id}
      class="option"
      role="option"
      tabIndex={-1}
      aria-selected={isChosen}
      onPointerDown={(event) => event.preventDefault()}
      onPointerMove={onPoint}
      onClick={onChoose}
    >
      <Icon name={icon} />
      {children}
    </button>
  )
}
