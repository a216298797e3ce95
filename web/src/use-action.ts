import { useState } from 'preact/hooks'
import { AetheelApiError, type FieldProblem } from '../../src/client/aetheel-client.js'
import { wordsOf } from './api.js'

export interface Action {
  /** Does it, unless it is being done. Settles with whether it worked; never rejects. */
  run: (act: () => Promise<unknown>) => Promise<boolean>
  isBusy: boolean
  /** Why the last one failed, in words. */
  error?: string
  /** Of that, what is wrong with single fields. */
  problems?: FieldProblem[]
}

/** Something that a person asks for by a button or a form. */
export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, 'run'>>({ isBusy: false })
  const run = async (act: () => Promise<unknown>): Promise<boolean> => {
    if (state.isBusy) return false
    setState({ isBusy: true })
    try {
      await act()
      setState({ isBusy: false })
      return true
    } catch (error) {
      const problems = error instanceof AetheelApiError ? error.problems : []
      setState({ isBusy: false, error: wordsOf(error), problems })
      return false
    }
  }
  return { ...state, run }
}
