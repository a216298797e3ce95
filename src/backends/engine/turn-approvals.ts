import { abortable, eitherSignal } from '../../core/async.js'
import type { TurnWatch } from './turn-watch.js'
import type { Approve } from '../types.js'

/**
 * Asks for one turn, whose time stands still meanwhile.
 *
 * Contract: what is answered after a signal is ignored; `isOver` is the one of the turn.
 */
export function approveInTurn(approve: Approve, watch: TurnWatch, isOver: AbortSignal): Approve {
  return async (request, signal) => {
    const either = eitherSignal(signal, isOver)
    watch.pause()
    try {
      return await abortable(either, (own) => approve(request, own))
    } catch (error) {
      if (!either.aborted) throw error
      return { isAllowed: false, message: 'Nobody waits for an answer any more.' }
    } finally {
      watch.resume()
    }
  }
}
