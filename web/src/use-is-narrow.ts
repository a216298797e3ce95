import { useEffect, useState } from 'preact/hooks'

/** As in styles/frame.css. There is no room for the sidebar. */
const NARROW = '(max-width: 56rem)'

export function useIsNarrow(query = NARROW): boolean {
  const [isNarrow, setIsNarrow] = useState(() => matchMedia(query).matches)
  useEffect(() => {
    const media = matchMedia(query)
    const follow = (): void => setIsNarrow(media.matches)
    follow()
    media.addEventListener('change', follow)
    return () => media.removeEventListener('change', follow)
  }, [query])
  return isNarrow
}
