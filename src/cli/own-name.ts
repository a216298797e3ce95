import type { ConfigLocation } from './command-context.js'

/** The command a person types to run us again with the same configuration. */
export function ownName({ environment, explicit }: Pick<ConfigLocation, 'environment' | 'explicit'>): string {
  const name = programName(environment)
  return explicit === undefined ? name : `${name} --config ${shellWord(explicit)}`
}

function programName(environment: NodeJS.ProcessEnv): string {
  switch (environment['npm_command']) {
    case 'exec':
      return 'npx aetheel'
    case 'start':
    case 'run-script':
      return 'npm start --'
    default:
      return 'aetheel'
  }
}

/** Quoted for a shell if necessary. */
function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
