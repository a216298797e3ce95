// Routes stand behind the #: the gateway serves one page.

import { useEffect, useState } from 'preact/hooks'

export interface Route {
  page: string
  /** What follows the page, as the id of a conversation. */
  parts: string[]
  query: URLSearchParams
}

/** Bookmarks and messages of the gateway lead to pages by names they had before. */
const EARLIER_NAMES: ReadonlyMap<string, string> = new Map([
  ['now', 'home'],
  ['figures', 'usage'],
])

/** Contract: takes anything that may stand in the address bar. */
export function parseHash(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [page = '', ...parts] = path.split('/').filter(Boolean).map(decode)
  return { page: EARLIER_NAMES.get(page) ?? (page || 'home'), parts, query: new URLSearchParams(query) }
}

export function hrefOf(page: string, ...parts: string[]): string {
  return `#/${[page, ...parts].map(encodeURIComponent).join('/')}`
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseHash(location.hash))
  useEffect(() => {
    const follow = (): void => setRoute(parseHash(location.hash))
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return route
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // Typed by hand: no page has such a part, and says so.
  }
}
