// Measures what the console costs a browser: node load.mjs [CHROMIUM [BACKENDS [LINKS [SECONDS]]]].
// An edge of that many backends, and a network of that many links, tell of changes ten times a
// second; printed is the time that all processes of Chromium take, in percent of a core, and how
// late frames are, per view.
import { chromium } from 'playwright-core'
import { createServer } from 'node:http'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { flags } from './browser.mjs'

const [named = 'chromium', backends = 1000, links = 500, seconds = 10] = process.argv.slice(2)
const program = named.includes('/') ? named : process.env.PATH.split(':')
  .map((folder) => `${folder}/${named}`).find(existsSync) ?? named
const file = (name) => readFileSync(new URL(`../bundle/${name}`, import.meta.url))
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css' }

const services = Math.ceil(backends / 50)
const routers = Math.ceil(Math.sqrt(links))
let tick = 0

// packets of a backend, a number that grows at a rate of its own
const packets = (i) => tick * (10 + i % 97) + i % 7 * (tick % 3)

function sample() {
  const list = []
  for (let s = 0; s < services; s++) {
    const of = []
    for (let i = s * 50; i < Math.min(backends, (s + 1) * 50); i++) {
      of.push({ service: `web${s}`, name: `server${i}`, sid: `fcbb:bb00:${(i + 1).toString(16)}::`,
        weight: 1, state: 'up', effective: (tick + i) % 400 < 3 ? 'down' : 'up', source: 'config',
        health: { status: (tick + i) % 400 < 3 ? 'failing' : 'healthy' }, buckets: 128,
        packets: packets(i), bytes: 800 * packets(i) })
    }
    list.push({ name: `web${s}`, role: 'edge', vip: `2001:db8:80::${s}`, protocol: 'tcp', port: 80,
      packets: tick * 2000 + s, bytes: tick * 1600000, edge: { policy: 'offer', candidates: 2,
        buckets: 6421, panic: false, backends: of } })
  }
  const drops = ['no_route', 'new_connections', 'bad_checksum'].map((reason, i) =>
    ({ reason, packets: tick * i }))
  return { time: new Date(1e12 + 100 * tick).toISOString(), services: list, events: tick % 5 ? [] :
    [{ number: tick, time: new Date().toISOString(), backend: `server${tick % backends}`,
      status: 'failing', reason: 'no answer' }],
  counters: [{ role: 'edge', transmittedPackets: 40000 * tick, passedPackets: 9 * tick, drops }] }
}

const pairs = []
for (let i = 0; i < links; i++) {
  const from = i % routers
  const to = (from + 1 + Math.floor(i / routers)) % routers
  pairs.push([`r${from}`, `r${to}`])
}
const answers = {
  caller: () => ({ name: 'test', role: 'operate' }),
  status: () => ({ node: 'edge', version: '0', roles: ['edge'], startedAt: new Date(), programs: [],
    warnings: [] }),
  topology: () => ({ problem: '', nodeLink: JSON.stringify({
    nodes: Array.from({ length: routers }, (_, i) => ({ id: `r${i}` })),
    links: pairs.map(([source, target], i) => ({ source, target, weight: 1 + (tick + i) % 9 })),
  }) }),
}

const server = createServer((request, response) => {
  const [, area, name] = request.url.split('/')
  if (area === 'console') {
    const asset = name || 'index.html'
    response.setHeader('Content-Type', types[asset.split('.').pop()])
    response.end(file(asset))
  } else if (name === 'monitor') {
    response.setHeader('Content-Type', 'text/event-stream')
    const timer = setInterval(() => {
      tick++
      response.write(`data: ${JSON.stringify(sample())}\n\n`)
    }, 100)
    request.on('close', () => clearInterval(timer))
  } else {
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(answers[name]?.() ?? { items: [] }))
  }
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))

// ticks are the clock ticks, of 10 ms, that a process and its descendants have taken.
function ticks(root) {
  const stats = readdirSync('/proc').filter((n) => /^\d+$/.test(n)).flatMap((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
      return [{ pid: +pid, parent: +fields[1], used: +fields[11] + +fields[12] }]
    } catch { return [] /* it has ended */ }
  })
  const of = (pid) => stats.filter((s) => s.parent === pid).reduce((sum, s) => sum + of(s.pid),
    stats.find((s) => s.pid === pid)?.used ?? 0)
  return of(root)
}

const launched = await chromium.launchServer({ executablePath: program, args: flags })
const browser = await chromium.connect(launched.wsEndpoint())
const page = await browser.newPage({ viewport: { width: 1280, height: 850 } })
const errors = []
page.on('pageerror', (error) => errors.push(error.message))
await page.goto(`http://127.0.0.1:${server.address().port}/console/`)
await page.evaluate('sessionStorage.setItem("sextant-token", "x")')
await page.reload()
for (const view of ['Overview', 'Services', 'Traffic', 'Events']) {
  await page.getByRole('navigation').getByRole('link', { name: view }).click()
  await page.getByRole('table').first().waitFor()
  await page.waitForTimeout(3000)
  const before = { used: ticks(launched.process().pid), at: performance.now(), tick }
  // frames, and the longest time between two of them
  const late = await page.evaluate((length) => new Promise((done) => {
    const begun = performance.now()
    const gaps = []
    let last = begun
    const frame = (now) => {
      gaps.push(now - last)
      last = now
      if (now - begun < length) requestAnimationFrame(frame)
      else done(gaps.sort((a, b) => a - b))
    }
    requestAnimationFrame(frame)
  }), 1000 * seconds)
  const length = (performance.now() - before.at) / 1000
  const used = (ticks(launched.process().pid) - before.used) / length // percent: ticks are 1/100 s
  console.log(`${view}: ${used.toFixed(0)} % of a core at ${((tick - before.tick) / length)
    .toFixed(1)} updates/s; frames late by ${late.at(-1).toFixed(0)} ms at most, 99 of 100 by ${
    late[Math.floor(0.99 * late.length)].toFixed(0)} ms`)
}
for (const error of errors) console.log(error)
await browser.close()
await launched.close()
server.closeAllConnections()
server.close()
