/** The environment the operator started us in. The only place that reads it; everything else takes it as an argument. */
export function operatorEnvironment(): NodeJS.ProcessEnv {
  return process.env
}

/** Whether a run may have its own value of a variable. What decides how programs are found and started, and what is
 *  ours, is the same for every run. */
export function canBeSetForRun(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name) && !/^(?:PATH|HOME|PWD|NODE_OPTIONS|(?:LD|DYLD|AETHEEL)_.*)$/.test(name)
}
