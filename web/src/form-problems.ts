import type { Action } from './use-action.js'

export interface FormProblems {
  /** Shown above the form. */
  words?: string
  /** Shown beside the field with this name. */
  of: (field: string) => string | undefined
}

/** Contract: a problem that belongs to no field is shown above the form, so none is lost. */
export function formProblems(
  { error, problems = [] }: Pick<Action, 'error' | 'problems'>,
  fields: string[],
): FormProblems {
  const fieldOf = (path: string): string | undefined =>
    fields.find((field) => path === field || path.startsWith(`${field}.`))
  const isBeside = problems.length > 0 && problems.every(({ path }) => fieldOf(path) !== undefined)
  const words = isBeside ? 'Not saved. Check the marked fields.' : error
  return {
    ...(words !== undefined && { words }),
    of: (field) => {
      const own = problems.filter(({ path }) => fieldOf(path) === field).map(({ message }) => message)
      return own.length === 0 ? undefined : own.join('; ')
    },
  }
}
