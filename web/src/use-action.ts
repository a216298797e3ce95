import { useState } from 'preact/hooks'
import { AetheelApiError, type FieldProblem } from '../../src/client/aetheel-client.js'
import { wordsOf } from './api.js'

export interface Action {
  /** Does nothing if one is already running. Resolves to whether it succeeded; never rejects. */
  run: (act: () => Promise<unknown>) => Promise<boolean>
  isBusy: boolean
  /** Why the last one failed. */
  error?: string
  /** What is wrong with which field. */
  problems?: FieldProblem[]
}

/** The work behind a button or a form. */
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
