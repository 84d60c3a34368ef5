// Reads the headers of an Ethernet frame: what a packet looks like as it leaves.

const names = { 4: 'IPv4', 6: 'TCP', 17: 'UDP', 41: 'IPv6', 43: 'routing', 58: 'ICMPv6', 1: 'ICMP',
  59: 'none' }

const hex = (bytes) => [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')

// ipv6 writes an address as RFC 5952 has it.
export function ipv6(bytes) {
  const groups = []
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i] << 8 | bytes[i + 1]).toString(16))
  const runs = [...groups.join(':').matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)]
    .toSorted((a, b) => b[0].length - a[0].length)
  const text = groups.join(':')
  if (!runs.length) return text
  const { 0: run, index } = runs[0]
  return `${text.slice(0, index)}::${text.slice(index + run.length).replace(/^:/, '')}`
}

// headers returns the headers of a frame in hexadecimal, from the outermost: { name, fields }.
export function headers(frame) {
  const bytes = new Uint8Array((frame.match(/../g) ?? []).map((b) => parseInt(b, 16)))
  const view = new DataView(bytes.buffer)
  const list = []
  const add = (name, ...fields) => list.push({ name, fields })
  let next = { 0x86dd: 41, 0x0800: 4 }[bytes.length >= 14 ? view.getUint16(12) : 0]
  if (bytes.length < 14) return list
  add('Ethernet', ['destination', mac(bytes.slice(0, 6))], ['source', mac(bytes.slice(6, 12))])
  for (let at = 14; next !== undefined;) {
    const left = bytes.length - at
    if (next === 41 && left >= 40) {
      next = bytes[at + 6]
      add('IPv6', ['source', ipv6(bytes.slice(at + 8, at + 24))],
        ['destination', ipv6(bytes.slice(at + 24, at + 40))],
        ['next header', names[next] ?? next], ['hop limit', bytes[at + 7]],
        ['flow label', `0x${(view.getUint32(at) & 0xfffff).toString(16).padStart(5, '0')}`])
      at += 40
    } else if (next === 4 && left >= 20) {
      next = bytes[at + 9]
      add('IPv4', ['source', bytes.slice(at + 12, at + 16).join('.')],
        ['destination', bytes.slice(at + 16, at + 20).join('.')],
        ['protocol', names[next] ?? next], ['TTL', bytes[at + 8]])
      at += (bytes[at] & 15) * 4
    } else if (next === 43 && left >= 8 && bytes[at + 2] === 4) {
      next = bytes[at]
      const fields = [['segments left', bytes[at + 3]], ['next header', names[next] ?? next]]
      const length = 8 + bytes[at + 1] * 8
      for (let i = 0; i <= bytes[at + 4] && 8 + 16 * (i + 1) <= Math.min(left, length); i++) {
        fields.push([`segment ${i}`, ipv6(bytes.slice(at + 8 + 16 * i, at + 24 + 16 * i))])
      }
      add('Segment routing', ...fields)
      at += length
    } else if ((next === 6 || next === 17) && left >= 8) {
      const fields = [['source port', view.getUint16(at)],
        ['destination port', view.getUint16(at + 2)]]
      if (next === 6 && left >= 14) {
        fields.push(['flags', ['FIN', 'SYN', 'RST', 'PSH', 'ACK']
          .filter((_, bit) => bytes[at + 13] >> bit & 1).join(' ') || 'none'])
      }
      add(names[next], ...fields)
      return list
    } else {
      add(names[next] ?? `protocol ${next}`, ['bytes', left], ['begins', hex(bytes.slice(at,
        at + 8))])
      return list
    }
  }
  return list
}

const mac = (bytes) => [...bytes].map((b) => b.toString(16).padStart(2, '0')).join(':')
