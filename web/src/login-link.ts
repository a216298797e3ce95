import { hrefOf, parseHash } from './router.js'

/** The code of a one-time link that this page was opened with. Takes it out of the address, and of the history. */
export function codeOfLink(): string | undefined {
  const { page, query } = parseHash(location.hash)
  if (page !== 'login') return undefined
  history.replaceState(null, '', hrefOf('home'))
  // The router hears of no replacement.
  dispatchEvent(new HashChangeEvent('hashchange'))
  return query.get('code') ?? undefined
}
