import type { ComponentChildren, Key } from 'preact'

export interface Column<Row> {
  title: string
  /** Aligned right. */
  isNumber?: boolean
  cell: (row: Row) => ComponentChildren
}

/** Contract: `caption` names it for screen readers. With `folds`, a narrow screen shows each row as a list. */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  folds = false,
}: {
  caption: string
  columns: Array<Column<Row>>
  rows: Row[]
  keyOf: (row: Row) => Key
  folds?: boolean
}) {
  return (
    <div class={folds ? 'table-frame folds' : 'table-frame'} role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, isNumber, cell }) => (
                <td key={title} class={isNumber ? 'number' : undefined} data-title={title}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
