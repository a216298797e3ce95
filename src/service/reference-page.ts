// The API reference for people, from the OpenAPI document.

import { escapeHtml } from './html-page.js'

/** The part of an OpenAPI document that the page shows. */
interface Operation {
  summary?: string
  description?: string
  tags?: string[]
  security?: Array<Record<string, string[]>>
  parameters?: Array<{ name: string; in: string; required?: boolean; description?: string }>
  requestBody?: { content: Record<string, { schema?: object }> }
  responses?: Record<string, { description?: string; content?: Record<string, { schema?: object }> }>
}

interface ApiDocument {
  info: { title: string; version: string }
  paths?: object
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

export function referencePage({ info, paths = {} }: ApiDocument): string {
  const operations = Object.entries(paths as Record<string, Partial<Record<string, Operation>>>).flatMap(
    ([path, item]) =>
      METHODS.flatMap((method) => {
        const operation = item[method]
        return operation === undefined ? [] : [{ path, method, operation }]
      }),
  )
  const groups = groupByTag(operations)
  const sections = [...groups].map(
    ([tag, members]) => `<h2>${escapeHtml(tag)}</h2>\n${members.map(operationHtml).join('\n')}`,
  )
  return `<h1>HTTP API <small>${escapeHtml(info.version)}</small></h1>
<p>For programs: <a href="/openapi.json">OpenAPI 3.1</a>. Send a token as <code>Authorization: Bearer aet_…</code>.</p>
${sections.join('\n')}`
}

interface ListedOperation {
  path: string
  method: string
  operation: Operation
}

function groupByTag(operations: ListedOperation[]): Map<string, ListedOperation[]> {
  const groups = new Map<string, ListedOperation[]>()
  for (const entry of operations) {
    const tag = entry.operation.tags?.[0] ?? 'other'
    groups.set(tag, [...(groups.get(tag) ?? []), entry])
  }
  return groups
}

function operationHtml({ path, method, operation }: ListedOperation): string {
  const { summary = '', description = '', security = [], parameters = [], requestBody, responses = {} } = operation
  const scope = Object.values(security[0] ?? {})[0]?.[0] ?? 'no token needed'
  const parts = [
    description && `<p>${escapeHtml(description)}</p>`,
    ...parameters.map(
      ({ name, in: place, required, description: text = '' }) =>
        `<p><code>${escapeHtml(name)}</code> <small>${escapeHtml(place)}${required ? '' : ', optional'}</small> ${escapeHtml(text)}</p>`,
    ),
    ...schemasHtml('Body', requestBody?.content),
    ...Object.entries(responses).flatMap(([status, response]) =>
      // Errors have the same format everywhere.
      status === 'default' ? [] : schemasHtml(`Response ${status}`, response.content),
    ),
  ]
  return `<details><summary><b>${method.toUpperCase()}</b> <code>${escapeHtml(path)}</code> ${escapeHtml(summary)} <small>${escapeHtml(scope)}</small></summary>
${parts.filter((part) => part !== '').join('\n')}
</details>`
}

function schemasHtml(title: string, content: Record<string, { schema?: object }> = {}): string[] {
  return Object.entries(content).map(
    ([type, { schema }]) =>
      `<p>${escapeHtml(title)} <small>${escapeHtml(type)}</small></p><pre>${escapeHtml(JSON.stringify(schema, null, 2) ?? '')}</pre>`,
  )
}
