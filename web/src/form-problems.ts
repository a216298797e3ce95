import type { Action } from './use-action.js'

export interface FormProblems {
  /** What stands above the form. */
  words?: string
  /** What stands beside a field, by its name. */
  of: (field: string) => string | undefined
}

/** Contract: what belongs to none of the fields stands above them, so that nothing is lost. */
export function formProblems(
  { error, problems = [] }: Pick<Action, 'error' | 'problems'>,
  fields: string[],
): FormProblems {
  const fieldOf = (path: string): string | undefined =>
    fields.find((field) => path === field || path.startsWith(`${field}.`))
  const isBeside = problems.length > 0 && problems.every(({ path }) => fieldOf(path) !== undefined)
  const words = isBeside ? 'Not saved yet: see the marked fields.' : error
  return {
    ...(words !== undefined && { words }),
    of: (field) => {
      const own = problems.filter(({ path }) => fieldOf(path) === field).map(({ message }) => message)
      return own.length === 0 ? undefined : own.join('; ')
    },
  }
}
