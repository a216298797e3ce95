// An API server on loopback, enough for `kubectl get pods` and `kubectl exec`, backed by containers made of namespaces.
// It shows what kubectl and we do, not what a kubelet and a container runtime do.

import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { discovery } from './discovery.js'
import { FakeExec } from './fake-exec.js'
import { FakePod, type PodOptions } from './fake-pod.js'
import { failure, forbidden, internalError, notFound, type Status } from './status.js'

const protocol = 'v5.channel.k8s.io'

export class FakeCluster {
  readonly forbidden = new Set<'get' | 'list' | 'exec'>()
  /** It accepts requests and does not answer. */
  isSilent = false
  /** The URLs of `exec` requests, which proxies and audit logs can see. */
  readonly execUrls: string[] = []
  /** Has one context, `fake`, with the namespace `default`. */
  readonly kubeconfig: string
  readonly #pods: FakePod[] = []
  readonly #connections = new Set<Duplex>()
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => offered.has(protocol) && protocol,
  })

  private constructor(
    private readonly server: Server,
    private readonly directory: string,
  ) {
    const { port } = server.address() as AddressInfo
    this.kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(this.kubeconfig, JSON.stringify(kubeconfigFor(`http://127.0.0.1:${port}`)))
    server.on('request', (request, response) => this.#answer(request, response))
    server.on('upgrade', (request, connection, head) => this.#upgrade(request, connection, head))
    server.on('connection', (connection) => {
      this.#connections.add(connection)
      connection.once('close', () => this.#connections.delete(connection))
    })
  }

  static async start(): Promise<FakeCluster> {
    const server = createServer({ maxHeaderSize: 64 * 1024 })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FakeCluster(server, mkdtempSync(join(tmpdir(), 'aetheel-cluster-')))
  }

  async addPod(options: PodOptions): Promise<FakePod> {
    const pod = await FakePod.start(options)
    this.#pods.push(pod)
    return pod
  }

  async deletePod(pod: FakePod): Promise<void> {
    this.#pods.splice(this.#pods.indexOf(pod), 1)
    await pod.remove()
  }

  async close(): Promise<void> {
    for (const pod of [...this.#pods]) await this.deletePod(pod)
    for (const connection of this.#connections) connection.destroy()
    this.server.close()
    rmSync(this.directory, { recursive: true })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    request.resume()
    if (this.isSilent) return
    const url = new URL(request.url ?? '/', 'http://cluster')
    const found = discovery[url.pathname] ?? this.#resource(url) ?? missingPage
    const code = isStatus(found) ? (found.code ?? 200) : 200
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(found))
  }

  #resource(url: URL): Status | Record<string, unknown> | undefined {
    const [, namespace = '', name, subresource] = podsPath.exec(url.pathname) ?? []
    if (!podsPath.test(url.pathname)) return undefined
    // A client that was refused a WebSocket tries again with SPDY, and must get the same answer.
    if (subresource !== undefined)
      return this.#execProblem(url) ?? failure(400, 'BadRequest', 'Upgrade request required')
    if (name === undefined) {
      if (this.forbidden.has('list')) return forbidden('list', 'pods', undefined, namespace)
      const items = this.#pods.filter((pod) => (namespace === '' || pod.namespace === namespace) && isMeant(pod, url))
      return { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items }
    }
    if (this.forbidden.has('get')) return forbidden('get', 'pods', name, namespace)
    return this.#find(namespace, name)?.toJSON() ?? notFound(name)
  }

  #find(namespace: string, name: string): FakePod | undefined {
    return this.#pods.find((pod) => pod.namespace === namespace && pod.name === name)
  }

  #execProblem(url: URL): Status | undefined {
    const [, namespace = '', name = ''] = podsPath.exec(url.pathname) ?? []
    // The verb by which a WebSocket is authorized too, since Kubernetes 1.35.
    if (this.forbidden.has('exec')) return forbidden('create', 'pods/exec', name, namespace)
    const pod = this.#find(namespace, name)
    if (!pod) return notFound(name)
    const container = url.searchParams.get('container') ?? pod.containers[0] ?? ''
    if (!pod.containers.includes(container)) {
      return failure(400, 'BadRequest', `container ${container} is not valid for pod ${name}`)
    }
    if (pod.state === 'unscheduled') return failure(400, 'BadRequest', `pod ${name} does not have a host assigned`)
    return undefined
  }

  #upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    if (this.isSilent) return
    const url = new URL(request.url ?? '/', 'http://cluster')
    this.execUrls.push(request.url ?? '')
    const problem = this.#execProblem(url)
    if (problem) return refuse(connection, problem)
    const [, namespace = '', name = ''] = podsPath.exec(url.pathname) ?? []
    const pod = this.#find(namespace, name)
    this.#webSockets.handleUpgrade(request, connection, head, (socket) => {
      if (!pod || pod.state === 'unscheduled') return socket.terminate()
      const command = url.searchParams.getAll('command')
      // The node is asked only after the connection to the client is open.
      if (!pod.canExec()) return FakeExec.conclude(socket, notThere(url.searchParams.get('container') ?? 'main'))
      const exec = new FakeExec(socket, pod.container.exec(command), () => pod.isHalfOpen)
      pod.execs.add(exec)
      socket.once('close', () => pod.execs.delete(exec))
    })
  }
}

/** Namespace, name and subresource, where present. */
const podsPath = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/pods(?:\/([^/]+)(?:\/(exec))?)?$/

const missingPage = failure(404, 'NotFound', 'the server could not find the requested resource')

function notThere(container: string): Status {
  return internalError(`unable to upgrade connection: container not found ("${container}")`)
}

function isStatus(answer: object): answer is Status {
  return 'kind' in answer && answer.kind === 'Status'
}

function refuse(connection: Duplex, status: Status): void {
  const body = JSON.stringify(status)
  const head = [
    `HTTP/1.1 ${status.code} ${status.reason}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  connection.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Whether the selectors of the request match the pod: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` and `!a`. */
function isMeant(pod: FakePod, url: URL): boolean {
  const holds = (term: string, labels: Record<string, string>): boolean => {
    const [, not, key = '', operator, value = ''] = /^(!?)([^\s=!]+)\s*(?:(==?|!=|in|notin)\s*(.*))?$/.exec(term) ?? []
    const values = value
      .replaceAll(/^\(|\)$/g, '')
      .split(',')
      .map((part) => part.trim())
    if (operator === undefined) return not ? !(key in labels) : key in labels
    const isIn = values.includes(labels[key] ?? '')
    return operator === '!=' || operator === 'notin' ? !isIn : key in labels && isIn
  }
  const terms = (name: string): string[] => (url.searchParams.get(name) ?? '').match(/[^,(]+(?:\([^)]*\))?/g) ?? []
  const { status } = pod.toJSON() as { status: { phase: string } }
  const fields = { 'metadata.name': pod.name, 'metadata.namespace': pod.namespace, 'status.phase': status.phase }
  return (
    terms('labelSelector').every((term) => holds(term.trim(), pod.labels)) &&
    terms('fieldSelector').every((term) => holds(term.trim(), fields))
  )
}

function kubeconfigFor(server: string): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'fake',
    clusters: [{ name: 'fake', cluster: { server } }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake', namespace: 'default' } }],
    users: [{ name: 'fake', user: {} }],
  }
}
