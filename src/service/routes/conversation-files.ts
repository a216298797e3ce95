// Files that people upload for messages, and download again.

import type { Readable } from 'node:stream'
import type { IncomingFile } from '../../channels/types.js'
import { GatewayError } from '../../errors.js'
import { uploadTooLarge } from '../../media/uploaded-files.js'
import { safeFileNames } from '../../media/safe-file-names.js'
import type { Upload } from '../../store/uploads.js'
import * as api from '../api/conversations.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { requireWeb } from '../http-channel.js'
import { routesOf } from '../route.js'
import { toWire } from '../wire.js'
import { callerOf } from './changes.js'
import { findConversation } from './visibility.js'

const MAX_UNTAKEN = 50

/** Browsers show these without running anything in them. */
const SHOWN_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

export function registerConversationFileRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'conversations')
  const { config, gateway, now, newId } = dependencies
  const { store } = gateway

  route(
    'POST /conversations/:id/files',
    { scope: 'run', allowsProjectTokens: true, takesFile: true },
    'Upload a file for a message; only in the channel `web`',
    { params: api.conversationParams, querystring: api.uploadQuery, response: { 201: api.uploadedFileSchema } },
    async (request, reply) => {
      const conversation = await findConversation(request.params.id, callerOf(request), store)
      requireWeb(conversation)
      if ((await store.uploads.countUntaken(conversation.id)) >= MAX_UNTAKEN) {
        const advice = 'Send them with a message, or wait an hour.'
        throw new GatewayError('too_many', `This conversation has ${MAX_UNTAKEN} files that were not sent. ${advice}`)
      }
      const maxBytes = config.attachmentMaxMb * 1024 * 1024
      if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw uploadTooLarge(maxBytes)
      const [id, limits] = [newId(), { maxBytes, types: config.attachmentTypes }]
      const received = await gateway.uploads.receive(id, request.body as Readable, request.fileType, limits)
      const [name = ''] = safeFileNames([request.query.name])
      const upload = { id, conversationId: conversation.id, name, ...received, createdAt: now() }
      await store.uploads.add(upload)
      return reply.code(201).send(uploadView(upload))
    },
  )

  route(
    'GET /conversations/:id/files/:fileId',
    { scope: 'read', allowsProjectTokens: true },
    'Download a file that was uploaded for a message',
    { params: api.fileParams, response: { 200: api.fileResponse } },
    async (request, reply) => {
      const { id, fileId } = request.params
      await findConversation(id, callerOf(request), store)
      const upload = await store.uploads.get(id, fileId)
      const content = upload && (await gateway.uploads.stream(fileId))
      if (!content) {
        throw new GatewayError('not_found', `There is no file ${fileId} of conversation ${id} on this gateway.`)
      }
      return reply.headers(headersOf(upload)).send(content)
    },
  )
}

/** Nothing in the file may run, neither as a page nor within one. */
function headersOf({ name, mediaType, bytes }: Upload): Record<string, string> {
  const isText = mediaType.startsWith('text/')
  const isShown = isText || SHOWN_TYPES.has(mediaType)
  return {
    'content-type': isText ? 'text/plain; charset=utf-8' : isShown ? mediaType : 'application/octet-stream',
    'content-length': String(bytes),
    'content-disposition': `${isShown ? 'inline' : 'attachment'}; filename*=UTF-8''${encoded(name)}`,
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff',
  }
}

function encoded(name: string): string {
  return encodeURIComponent(name).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

export function uploadView({ id, conversationId, name, bytes, mediaType }: Upload): api.UploadedFile {
  const url = `/conversations/${conversationId}/files/${id}`
  return toWire(api.uploadedFileSchema, { id, name, size: bytes, mediaType, url })
}

/** Contract: throws `not_found` unless all of them belong to the conversation. */
export async function uploadedFiles(
  conversationId: string,
  ids: string[],
  { gateway }: Pick<ServiceDependencies, 'gateway'>,
): Promise<IncomingFile[]> {
  const uploads = await gateway.store.uploads.getAll(conversationId, ids)
  return ids.map((id) => {
    const upload = uploads.find((candidate) => candidate.id === id)
    if (upload) {
      const { name, mediaType: type, bytes } = upload
      return { name, type, bytes, read: () => gateway.uploads.read(id) }
    }
    const advice = 'A file that is not sent within an hour is deleted. Upload it again.'
    throw new GatewayError('not_found', `There is no file ${id} in conversation ${conversationId}. ${advice}`)
  })
}
