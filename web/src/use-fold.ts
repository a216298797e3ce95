import { useState } from 'preact/hooks'

/** What a person opened or closed, by block key, most recent last. */
export type Folds = Map<number, boolean>

/** Contract: of the event blocks still open, the one opened last. */
export function lastOpened(folds: Folds): number | undefined {
  return [...folds].findLast(([key, isOpen]) => isOpen && key > 0)?.[0]
}

/** Props for a `<details>` that stays open or closed when its run moves to another place on the page. */
export function useFold(folds: Folds, key: number, isOpenAtFirst = false) {
  const [open, setOpen] = useState(folds.get(key) ?? isOpenAtFirst)
  const onToggle = ({ currentTarget }: { currentTarget: HTMLDetailsElement }): void => {
    // Browsers also fire toggle for details that start open.
    if (currentTarget.open === open) return
    folds.delete(key)
    folds.set(key, currentTarget.open)
    setOpen(currentTarget.open)
  }
  return { open, onToggle }
}
