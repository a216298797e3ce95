/** The known key that was probably meant, if one is close enough. Ignores case, `_` and `-`. */
export function nearestKey(key: string, known: readonly string[], mostMistakes = Infinity): string | undefined {
  const meant = plain(key)
  const near = known
    .map((candidate) => ({ candidate, target: plain(candidate) }))
    .map(({ candidate, target }) => ({ candidate, limit: Math.min(mistakesAllowed(target), mostMistakes), target }))
    // Computing the edit distance of a megabyte-long key would take minutes.
    .filter(({ limit, target }) => Math.abs(target.length - meant.length) <= limit)
    .map(({ candidate, limit, target }) => ({ candidate, limit, distance: editDistance(meant, target) }))
    .filter(({ limit, distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance)
  return near[0]?.candidate
}

function plain(key: string): string {
  return key.replaceAll(/[_-]/g, '').toLowerCase()
}

function mistakesAllowed(target: string): number {
  return Math.max(1, Math.floor(target.length / 3))
}

/** Counts inserted, deleted, replaced and transposed characters. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current.push(
        Math.min(
          at(current, column - 1) + 1,
          at(last, column) + 1,
          at(last, column - 1) + (isSame ? 0 : 1),
          isSwapped ? at(beforeLast, column - 2) + 1 : Infinity,
        ),
      )
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

function at(row: number[], column: number): number {
  return row[column] ?? Infinity
}
