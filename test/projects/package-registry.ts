import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { serveHttp } from '../kit/loopback.js'

const INSTALLED = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** An npm registry on loopback with the packages installed here, so that `npm install` needs no network. */
export async function startPackageRegistry(): Promise<string> {
  const tarballs = new Map<string, Buffer>()
  const address = await serveHttp((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1)
    const tarball = tarballs.get(path)
    if (tarball) {
      response.end(tarball)
    } else if (existsSync(join(INSTALLED, path, 'package.json'))) {
      void describePackage(path).then((text) => response.end(text))
    } else {
      response.writeHead(404).end('{}')
    }
  })

  const describePackage = async (name: string): Promise<string> => {
    const manifest = JSON.parse(readFileSync(join(INSTALLED, name, 'package.json'), 'utf8')) as { version: string }
    const { version } = manifest
    const packed = await pack(join(INSTALLED, name))
    const path = `${name}/-/${version}.tgz`
    tarballs.set(path, packed)
    const integrity = `sha512-${createHash('sha512').update(packed).digest('base64')}`
    const versions = { [version]: { ...manifest, dist: { tarball: `${address}/${path}`, integrity } } }
    return JSON.stringify({ name, 'dist-tags': { latest: version }, versions })
  }
  return address
}

async function pack(directory: string): Promise<Buffer> {
  const args = ['-cz', '-C', dirname(directory), basename(directory)]
  const { stdout } = await promisify(execFile)('tar', args, { encoding: 'buffer', maxBuffer: 200_000_000 })
  return stdout
}
