import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Icon, type IconName } from './icon.js'

export interface MenuItem {
  label: string
  icon: IconName
  isDanger?: boolean
  onChoose: () => void
}

const LEAVING = ['focusin', 'pointerdown'] as const

/** A menu button, for the mouse and for arrow keys. */
export function Menu({ label, items }: { label: string; items: MenuItem[] }) {
  const [isOpen, setIsOpen] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()
  useEffect(() => {
    if (!isOpen) return undefined
    list.current?.querySelector('button')?.focus()
    const leave = ({ target }: Event): void => {
      if (!(target instanceof Node && frame.current?.contains(target))) setIsOpen(false)
    }
    for (const name of LEAVING) document.addEventListener(name, leave)
    return () => {
      for (const name of LEAVING) document.removeEventListener(name, leave)
    }
  }, [isOpen])
  const close = (): void => {
    setIsOpen(false)
    frame.current?.querySelector('button')?.focus()
  }
  const press = (event: KeyboardEvent): void => {
    if (!['Escape', 'ArrowDown', 'ArrowUp'].includes(event.key)) return
    event.preventDefault()
    if (event.key === 'Escape') close()
    else move(event.key === 'ArrowDown' ? 1 : -1)
  }
  const move = (by: number): void => {
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    const at = buttons.findIndex((button) => button === document.activeElement)
    buttons[(at + by + buttons.length) % buttons.length]?.focus()
  }
  return (
    <div ref={frame} class="menu">
      <button
        type="button"
        class="quiet icon-only"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setIsOpen(!isOpen)}
      >
        <Icon name="more" />
      </button>
      {isOpen && (
        <div ref={list} id={id} class="menu-list" role="menu" tabIndex={-1} aria-label={label} onKeyDown={press}>
          {items.map(({ label: words, icon, isDanger = false, onChoose }) => (
            <button
              key={words}
              type="button"
              role="menuitem"
              class={isDanger ? 'danger' : undefined}
              onClick={() => {
                close()
                onChoose()
              }}
            >
              <Icon name={icon} />
              {words}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}
