import { useEffect, useState } from 'preact/hooks'

/** Incremented when the page's colours change, so that canvases are redrawn. */
export function useColours(): number {
  const [changes, setChanges] = useState(0)
  useEffect(() => {
    const change = (): void => setChanges((before) => before + 1)
    const system = matchMedia('(prefers-color-scheme: light)')
    const choice = new MutationObserver(change)
    system.addEventListener('change', change)
    choice.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      system.removeEventListener('change', change)
      choice.disconnect()
    }
  }, [])
  return changes
}
