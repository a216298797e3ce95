import { hrefOf, parseHash } from './router.js'

/** The code of the one-time link that opened this page. Removes it from the address bar and the history. */
export function codeOfLink(): string | undefined {
  const { page, query } = parseHash(location.hash)
  if (page !== 'login') return undefined
  history.replaceState(null, '', hrefOf('home'))
  // replaceState fires no event, and the router needs one.
  dispatchEvent(new HashChangeEvent('hashchange'))
  return query.get('code') ?? undefined
}
