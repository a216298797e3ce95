import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Icon } from './icon.js'

/** A modal dialog. Contract: open for as long as it is rendered; returns the focus to where it was. */
export function Dialog({
  title,
  look = 'headed',
  onClose,
  children,
}: {
  title: string
  /** The others have their own frame. */
  look?: 'headed' | 'palette' | 'drawer'
  onClose: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    const { current } = dialog
    const dismiss = (event: MouseEvent): void => {
      if (event.target === current && current && isOutside(current, event)) current.close()
    }
    current?.showModal()
    current?.addEventListener('click', dismiss)
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} class={look === 'headed' ? undefined : look} aria-label={title} onClose={onClose}>
      {look === 'headed' && (
        <div class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="quiet icon-only" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
      )}
      {children}
    </dialog>
  )
}

function isOutside(dialog: HTMLElement, { clientX, clientY }: MouseEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect()
  return clientX < left || clientX > right || clientY < top || clientY > bottom
}
