/** The epoch of Discord's ids: 2015. */
const EPOCH_MS = 1_420_070_400_000n

/** The smallest id possible at this time. Ids grow with time across all of Discord. */
export function snowflakeAt(timeMs: number): string {
  const sinceEpoch = BigInt(Math.floor(timeMs)) - EPOCH_MS
  return String((sinceEpoch > 0n ? sinceEpoch : 0n) << 22n)
}

export function isAfter(id: string, other: string): boolean {
  return BigInt(id) > BigInt(other)
}
