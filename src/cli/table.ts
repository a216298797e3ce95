/** Rows of cells as text, each column as wide as its widest cell. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** How wide these rows are as a table. */
export function tableWidth(rows: string[][]): number {
  return Math.max(
    ...table(rows)
      .split('\n')
      .map(({ length }) => length),
  )
}
