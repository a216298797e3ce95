import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isPublicAddress } from '../../src/media/public-address.js'

it.each([
  ...['1.1.1.1', '8.8.8.8', '93.184.215.14', '172.15.255.255', '172.32.0.0', '100.63.255.255', '100.128.0.0'],
  ...['2606:4700::1111', '2a00:1450:4001:80f::200e', '2620:fe::fe', '2400:cb00::1'],
])('%s is on the public internet', (address) => {
  expect(isPublicAddress(address)).toEqual(true)
})

it.each([
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.0.1'],
  ...['169.254.169.254', '168.63.129.16', '172.16.0.1', '172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1'],
  ...['192.168.1.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.9', '224.0.0.1', '239.255.255.250'],
  ...['240.0.0.1', '255.255.255.255'],
  // Loopback, none, mapped and translated IPv4.
  ...['::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::127.0.0.1', '64:ff9b::7f00:1'],
  ...['64:ff9b:1::a00:1', '2002:7f00:1::', '2001:0:7f00:1::', '2001::1'],
  // Local, for groups, for examples, to be dropped.
  ...['fe80::1', 'fe80::1%lo', '2606:4700::1%eth0', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1', '2001:db8::1'],
  ...['3fff::1', '100::1', '5f00::1', '4000::1'],
  // No addresses at all.
  ...['', 'localhost', '127.1', '0x7f.0.0.1', '2130706433', '1.1.1.1 ', '1.1.1.1.', '[::1]'],
])('%s is not on the public internet', (address) => {
  expect(isPublicAddress(address)).toEqual(false)
})

it('judges an address the same in every notation', () => {
  const anyWords = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })
  fc.assert(
    fc.property(anyWords, (words) => {
      const plain = words.map((word) => word.toString(16)).join(':')
      const long = words.map((word) => word.toString(16).padStart(4, '0').toUpperCase()).join(':')
      const url = new URL(`http://[${plain}]/`).hostname.slice(1, -1)
      expect([long, url].map(isPublicAddress)).toEqual([isPublicAddress(plain), isPublicAddress(plain)])
    }),
    { numRuns: 500 },
  )
})
