import { useState } from 'preact/hooks'

/** What a person has opened or closed, by the key of its block, the latest last. */
export type Folds = Map<number, boolean>

/** Contract: the event's block that was opened last, of those still open. */
export function lastOpened(folds: Folds): number | undefined {
  return [...folds].findLast(([key, isOpen]) => isOpen && key > 0)?.[0]
}

/** The properties of a `<details>` that is still open, or closed, when its run is shown in another place. */
export function useFold(folds: Folds, key: number, isOpenAtFirst = false) {
  const [open, setOpen] = useState(folds.get(key) ?? isOpenAtFirst)
  const onToggle = ({ currentTarget }: { currentTarget: HTMLDetailsElement }): void => {
    // A browser tells of those that are open at first, too.
    if (currentTarget.open === open) return
    folds.delete(key)
    folds.set(key, currentTarget.open)
    setOpen(currentTarget.open)
  }
  return { open, onToggle }
}
