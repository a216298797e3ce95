import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ApiErrorCode } from '../../src/client/aetheel-client.js'
import { codeOf, wordsOf } from './api.js'
import { onConnected } from './live.js'

export interface Resource<T> {
  /** The last loaded value. It stays while a newer one loads, or fails to. */
  value?: T
  /** Why the last load failed. */
  error?: string
  /** The error code, if the gateway sent one. */
  errorCode?: ApiErrorCode | undefined
  isLoading: boolean
  reload: () => void
}

/**
 * The response to a request, repeated whenever `inputs` change, and after a failure when the gateway is back. Contract:
 * only the response to the latest request counts. Give the component a `key` if the value of previous inputs must not be
 * shown in the meantime.
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
  const hasFailed = state.error !== undefined
  useEffect(() => (hasFailed ? onConnected(reload) : undefined), [hasFailed, reload])
  return { ...state, reload }
}
