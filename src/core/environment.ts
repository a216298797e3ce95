/** The operator's environment. Nothing else reads `process.env`; everything takes it as an argument. */
export function operatorEnvironment(): NodeJS.ProcessEnv {
  return process.env
}

/** Whether a run may set this variable. Ours, and those that decide how programs are found and started, are fixed. */
export function canBeSetForRun(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name) && !/^(?:PATH|HOME|PWD|NODE_OPTIONS|(?:LD|DYLD|AETHEEL)_.*)$/.test(name)
}
