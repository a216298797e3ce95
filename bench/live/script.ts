/** The prompts of the benchmarks, and the model's answers. */

export const PROMPT = 'Please say something.'
export const LONG_PROMPT = 'Please say a lot.'
export const SYSTEM_PROMPT = 'Answer in one sentence.'

/** Used to recognise the answer where it is not parsed. */
export const BEGINNING = 'Something, '
export const ENDING = 'scripted model.'

const SHORT_DELTAS = [BEGINNING, 'said by the ', ENDING]
const LONG_CHARACTERS = 20_000
const DELTA_CHARACTERS = 8
const LONG_TEXT = words(LONG_CHARACTERS)

export const ANSWER = SHORT_DELTAS.join('')
export const LONG_ANSWER = LONG_TEXT

export function deltasFor(isLong: boolean): string[] {
  return isLong ? (LONG_TEXT.match(new RegExp(`.{1,${DELTA_CHARACTERS}}`, 'g')) ?? []) : SHORT_DELTAS
}

/** Deterministic, and without repetitions that an agent would take for a model stuck in a loop. */
function words(length: number): string {
  let state = 1
  let text = ''
  while (text.length < length) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    text += `${state.toString(36)} `
  }
  return `${text.slice(0, length - 1)}.`
}
