// Routes are in the URL fragment: the gateway serves one page.

import { useEffect, useState } from 'preact/hooks'

export interface Route {
  page: string
  /** The rest of the path, such as the id of a conversation. */
  parts: string[]
  query: URLSearchParams
}

/** Bookmarks, and messages sent by earlier versions, use former names. */
const EARLIER_NAMES: ReadonlyMap<string, string> = new Map([
  ['now', 'home'],
  ['figures', 'usage'],
])

/** Contract: takes anything the address bar may contain. */
export function parseHash(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [page = '', ...parts] = path.split('/').filter(Boolean).map(decode)
  return { page: EARLIER_NAMES.get(page) ?? (page || 'home'), parts, query: new URLSearchParams(query) }
}

export function hrefOf(page: string, ...parts: string[]): string {
  return `#/${[page, ...parts].map(encodeURIComponent).join('/')}`
}

/** The gateway serves it apart from the dashboard. */
export function documentationHref(query = ''): string {
  return query === '' ? '/docs' : `/docs?q=${encodeURIComponent(query)}`
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
    return part // Typed by hand. The page will say that it does not exist.
  }
}
