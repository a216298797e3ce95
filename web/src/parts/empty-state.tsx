import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.js'

/** Says that there is nothing yet, and what to do about it. */
export function EmptyState({
  title,
  icon,
  children,
}: {
  title: string
  icon?: IconName
  children?: ComponentChildren
}) {
  return (
    <div class="empty">
      {icon && <Icon name={icon} />}
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}
