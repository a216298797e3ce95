import { useState } from 'preact/hooks'

/** What a person has opened or closed, by the key of its block. */
export type Folds = Map<number, boolean>

/** The properties of a `<details>` that is still open, or closed, when its run is shown in another place. */
export function useFold(folds: Folds, key: number, isOpenAtFirst = false) {
  const [open, setOpen] = useState(folds.get(key) ?? isOpenAtFirst)
  const onToggle = ({ currentTarget }: { currentTarget: HTMLDetailsElement }): void => {
    folds.set(key, currentTarget.open)
    setOpen(currentTarget.open)
  }
  return { open, onToggle }
}
