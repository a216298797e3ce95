import type { PodProcessOptions } from '../../src/kubernetes/types.js'

/** A shell that does nothing and prints nothing. */
export const SILENT_SHELL: Omit<PodProcessOptions, 'runId'> = {
  executable: 'sh',
  args: ['-c', ':'],
  directory: '/',
  environment: {},
  defaults: {},
  stdin: '',
  files: [],
  stopSignal: 'SIGTERM',
  onStdout: () => {},
  onStderr: () => {},
}
