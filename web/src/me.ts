import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Me } from '../../src/client/aetheel-client.js'

export const MeContext = createContext<Me>({ name: '', scopes: [], projects: null })

/** The token of this login, and what it allows. */
export function useMe(): Me {
  return useContext(MeContext)
}
