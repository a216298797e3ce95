// Holds a run in a pod, as a gateway does, until it is killed: `run-holder.js KUBECONFIG POD RUN_ID SCRIPT`.

import { createPods } from '../../src/kubernetes/pods.js'

const [kubeconfig, name = '', runId = '', script = ''] = process.argv.slice(2)
const pods = createPods({ environment: { ...process.env, KUBECONFIG: kubeconfig }, passVariables: [] })
const pod = await pods.open({ name }, AbortSignal.timeout(60_000))
pod.start({
  executable: 'sh',
  args: ['-c', script],
  directory: '/workspace',
  environment: {},
  defaults: {},
  stdin: '',
  files: [],
  runId,
  stopSignal: 'SIGTERM',
  onStdout: (chunk) => process.stdout.write(chunk),
  onStderr: () => {},
})
