import { dismiss, type Toast, useToasts } from '../toasts.js'
import { Icon } from './icon.js'

export function ToastList() {
  const toasts = useToasts()
  return (
    <div class="toasts" role="status" aria-label="Notifications">
      {toasts.map(({ id, title, what, href }) => (
        <div key={id} class="toast">
          {href === undefined ? (
            <span class="toast-words">
              <Words title={title} what={what} />
            </span>
          ) : (
            <a class="toast-words" href={href} onClick={() => dismiss(id)}>
              <Words title={title} what={what} />
            </a>
          )}
          <button type="button" class="quiet icon-only" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}

function Words({ title, what }: Pick<Toast, 'title' | 'what'>) {
  return (
    <>
      <strong>{title}</strong>
      {what !== undefined && <span class="toast-what">{what}</span>}
    </>
  )
}
