import assert from 'node:assert/strict'
import test from 'node:test'
import * as state from '../src/state.js'
import { layers, place } from '../src/layout.js'
import { headers, ipv6 } from '../src/packet.js'

test('a filter is in the address, and has words to want and to leave out', () => {
  assert.deepEqual(state.route(state.address('services', 'web -down')),
    { view: 'services', filter: 'web -down' })
  assert.deepEqual(state.route(''), { view: 'overview', filter: '' })
  assert.equal(state.matches('WEB -down', ['web1', 'up']), true)
  assert.equal(state.matches('web -down', ['web1', 'down']), false)
  assert.equal(state.matches('-', ['a - b']), true)
})

const sample = (time, packets, events) => ({ time, events, counters: [{ role: 'edge',
  transmittedPackets: packets, drops: [{ reason: 'no_route', packets: 1 }] }],
services: [{ name: 'web', role: 'edge', packets, bytes: 0,
  edge: { backends: [{ name: 'web1', packets }] } }] })

test('rates are differences, and none comes of a counter that began anew', () => {
  let known = state.follow(undefined, sample('2030-01-01T00:00:00Z', 100))
  assert.deepEqual(known.rates, {})
  known = state.follow(known, sample('2030-01-01T00:00:02Z', 300, [{ number: 1 }, { number: 2 }]))
  assert.equal(known.rates['backend/web/web1'], 100)
  assert.equal(known.rates['outcome/edge/transmitted'], 100)
  assert.deepEqual(known.events.map((e) => e.number), [2, 1])
  known = state.follow(known, sample('2030-01-01T00:00:03Z', 5, [{ number: 3 }]))
  assert.equal(known.rates['service/edge/web'], 0)
  assert.deepEqual(known.history['service/edge/web'], [100, 0])
  assert.deepEqual(known.events.map((e) => e.number), [3, 2, 1])
})

test('samples that are not shown leave their events', () => {
  const first = sample('2030-01-01T00:00:00Z', 100, [{ number: 1 }])
  const both = state.later(first, sample('2030-01-01T00:00:01Z', 200, [{ number: 2 }]))
  assert.deepEqual(both.events.map((e) => e.number), [1, 2])
  assert.equal(both.services[0].packets, 200)
  assert.equal(state.later(undefined, first), first)
  assert.deepEqual([state.pause(1), state.pause(50)], [100, 300])
})

test('numbers', () => {
  assert.deepEqual([0, 0.25, 9.96, 1234, 12345, 12345678].map(state.amount),
    ['0', '0.3', '10.0', '1234', '12 k', '12 M'])
  assert.equal(state.rate(undefined), '–')
})

test('draining says what it will do, and that nobody is left', () => {
  const backend = (name, effective) => ({ name, effective, buckets: 50 })
  const service = (...backends) => ({ name: 'web', edge: { buckets: 100, backends } })
  const [a, b] = [backend('a', 'up'), backend('b', 'up')]
  const two = state.drainPlan(service(a, b), a, 1)
  assert.equal(two.last, false)
  assert.match(two.plan.join(' '), /1 open connection of it.* 50.0 % of new connections go to b\./)
  const one = state.drainPlan(service(a, backend('b', 'draining')), a)
  assert.equal(one.last, true)
  assert.match(one.plan.join(' '), /No other backend takes new connections/)
})

test('roles include those before them', () => {
  assert.equal(state.may({ role: 'admin' }, 'operate'), true)
  assert.equal(state.may({ role: 'read' }, 'operate'), false)
  assert.equal(state.may({ role: 'king' }, 'read'), false)
  assert.equal(state.may(undefined, 'read'), false)
})

test('a node that has a place keeps it, whatever comes and goes', () => {
  const nodes = ['b10', 'b9', 'b1'].map((id) => ({ id, column: 1 }))
  const first = new Map(place('p', nodes).at)
  assert.deepEqual(['b1', 'b9', 'b10'].map((id) => first.get(id).y), [0, 1, 2])
  const then = place('p', [{ id: 'a', column: 1 }, { id: 'b9', column: 0 }]).at
  assert.deepEqual(then.get('b9'), first.get('b9'))
  assert.deepEqual(then.get('a'), { x: 0, y: 3 })
  const c = place('p', [{ id: 'c', column: 2 }])
  assert.deepEqual([c.at.get('c'), c.columns, c.rows], [{ x: 1, y: 0 }, 2, 4])
})

test('columns of many nodes are wide, not high, and no two nodes share a place', () => {
  const nodes = Array.from({ length: 500 }, (_, i) => ({ id: `n${i}`, column: i < 20 ? 0 : 1 }))
  const { at, columns, rows } = place('q', nodes)
  assert.equal(rows, 23)
  assert.equal(columns, 1 + Math.ceil(480 / 23))
  assert.equal(new Set([...at.values()].map((p) => `${p.x} ${p.y}`)).size, 500)
  const more = place('q', [{ id: 'late', column: 0 }]).at
  assert.deepEqual(more.get('late'), { x: 0, y: 21.5 })
})

test('columns are distances, and parts without a way to the first begin at 0', () => {
  const column = layers(['a', 'b', 'c', 'x', 'y'], [{ from: 'b', to: 'a' }, { from: 'b', to: 'c' },
    { from: 'x', to: 'y' }], 'a')
  assert.deepEqual(Object.fromEntries(column), { a: 0, b: 1, c: 2, x: 0, y: 1 })
})

test('addresses as RFC 5952 writes them', () => {
  for (const text of ['::', '::1', '2001:db8::1', 'fcbb:bb00:3:2::', '2001:db8:0:1:1:1:1:1',
    '2001:0:0:1::1', '1:2:3:4:5:6:7:8', 'ff02::1:ff00:1']) {
    const [head, tail] = text.split('::').map((half) => half.split(':').filter(Boolean))
    const groups = [...head, ...tail ? Array(8 - head.length - tail.length).fill('0') : [],
      ...tail ?? []]
    const bytes = groups.flatMap((g) => [parseInt(g, 16) >> 8, parseInt(g, 16) & 255])
    assert.equal(ipv6(Uint8Array.from(bytes)), text)
  }
})

test('headers of a packet with a segment routing header, and of every beginning of it', () => {
  const a = (last) => `20010db8${'00'.repeat(11)}${last}`
  const frame = `${'02'.repeat(6)}${'04'.repeat(6)}86dd` +
    `6000abcd00642b40${a('01')}${a('02')}` + // IPv6, routing
    `29040401${'01'}000000${a('0a')}${a('0b')}` + // SRH of two segments, 1 left
    `6000000000140640${a('c1')}${a('80')}` + // IPv6, TCP
    '9c40005000000000000000005002ffff00000000'
  const list = headers(frame)
  assert.deepEqual(list.map((h) => h.name), ['Ethernet', 'IPv6', 'Segment routing', 'IPv6', 'TCP'])
  assert.deepEqual(Object.fromEntries(list[2].fields), { 'segments left': 1, 'next header': 'IPv6',
    'segment 0': '2001:db8::a', 'segment 1': '2001:db8::b' })
  assert.deepEqual(Object.fromEntries(list[4].fields),
    { 'source port': 40000, 'destination port': 80, flags: 'SYN' })
  for (let n = 0; n < frame.length; n += 2) headers(frame.slice(0, n)) // none throws
})
