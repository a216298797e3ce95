import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ApiErrorCode } from '../../src/client/aetheel-client.js'
import { codeOf, wordsOf } from './api.js'

export interface Resource<T> {
  /** The last one that was loaded; it stays while a newer one is on its way, or fails. */
  value?: T
  /** Why there is no newer one, in words. */
  error?: string
  /** Its code, if the gateway has told it. */
  errorCode?: ApiErrorCode | undefined
  isLoading: boolean
  reload: () => void
}

/**
 * What a request answers, asked anew whenever `inputs` change. Contract: of several answers, that of the last request
 * counts. Give the component a `key` where a value of other inputs must not be shown meanwhile.
 */
export function useResource<T>(load: () => Promise<T>, inputs: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, 'reload'>>({ isLoading: true })
  const latest = useRef(0)
  const reload = useCallback(() => {
    const turn = ++latest.current
    setState(({ value }) => ({ isLoading: true, ...(value !== undefined && { value }) }))
    load().then(
      (value) => turn === latest.current && setState({ value, isLoading: false }),
      (error: unknown) =>
        turn === latest.current &&
        setState((before) => ({ ...before, error: wordsOf(error), errorCode: codeOf(error), isLoading: false })),
    )
  }, inputs)
  useEffect(() => {
    reload()
    return () => {
      latest.current += 1
    }
  }, [reload])
  return { ...state, reload }
}
