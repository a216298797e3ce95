// The API reference for people: plain HTML from the OpenAPI document, without scripts.

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

export const PAGE_STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { overflow-x: auto; padding: .5rem; border: 1px solid #8886 }
summary { cursor: pointer; padding: .25rem 0 }
summary b { display: inline-block; width: 4.5rem }
details { border-top: 1px solid #8886 }
small { opacity: .7 }
`

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
    ([tag, members]) => `<h2>${escape(tag)}</h2>\n${members.map(operationHtml).join('\n')}`,
  )
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(info.title)} HTTP API</title><style>${PAGE_STYLE}</style></head>
<body>
<h1>${escape(info.title)} HTTP API <small>${escape(info.version)}</small></h1>
<p>For programs: <a href="/openapi.json">OpenAPI 3.1</a>. Send a token as <code>Authorization: Bearer aet_…</code>.</p>
${sections.join('\n')}
</body>
</html>
`
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
    description && `<p>${escape(description)}</p>`,
    ...parameters.map(
      ({ name, in: place, required, description: text = '' }) =>
        `<p><code>${escape(name)}</code> <small>${escape(place)}${required ? '' : ', optional'}</small> ${escape(text)}</p>`,
    ),
    ...schemasHtml('Body', requestBody?.content),
    ...Object.entries(responses).flatMap(([status, response]) =>
      // Errors have the same format everywhere.
      status === 'default' ? [] : schemasHtml(`Response ${status}`, response.content),
    ),
  ]
  return `<details><summary><b>${method.toUpperCase()}</b> <code>${escape(path)}</code> ${escape(summary)} <small>${escape(scope)}</small></summary>
${parts.filter((part) => part !== '').join('\n')}
</details>`
}

function schemasHtml(title: string, content: Record<string, { schema?: object }> = {}): string[] {
  return Object.entries(content).map(
    ([type, { schema }]) =>
      `<p>${escape(title)} <small>${escape(type)}</small></p><pre>${escape(JSON.stringify(schema, null, 2) ?? '')}</pre>`,
  )
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
