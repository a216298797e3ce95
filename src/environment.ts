/** The environment the operator started us in. The only place that reads it; everything else takes it as an argument. */
export function operatorEnvironment(): NodeJS.ProcessEnv {
  return process.env
}
