import { abortable, eitherSignal } from '../../core/async.js'
import type { TurnWatch } from './turn-watch.js'
import type { Approve } from '../types.js'

/**
 * Asks for approval during one turn, whose clock is paused meanwhile.
 *
 * Contract: an answer after either signal is ignored; `isOver` is the turn's.
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
