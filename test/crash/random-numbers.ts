/** From 0 to 1, the same for the same seed (Lehmer's generator). */
export function randomNumbers(seed: number): () => number {
  let state = seed + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
