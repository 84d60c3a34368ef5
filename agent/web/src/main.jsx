import './style.css'
import { h, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import * as api from './api.js'
import { address, follow, later, pause, route } from './state.js'
import { Empty, Fault } from './parts.jsx'
import { Picture, edgeGraph, networkGraph } from './topology.jsx'
import { Services } from './services.jsx'
import { Events, Traffic } from './traffic.jsx'
import { Paths } from './paths.jsx'
import { ControllerNetwork, Reroutes } from './controller.jsx'
import { Explain } from './explain.jsx'

const views = {
  agent: { overview: 'Overview', services: 'Services', traffic: 'Traffic', paths: 'Paths',
    events: 'Events', explain: 'Explain' },
  controller: { overview: 'Network', reroutes: 'Reroutes' },
}

const opened = new Date()
const slowly = 3000 // ms between two looks at what changes seldom

const items = async (path) => (await api.get(path)).items

// what a daemon knows beside its stream
const slow = {
  agent: async () => {
    const [status, policies, protections, flows, routes, peers] = await Promise.all([
      api.get('/v1/status'), items('/v1/policies'), items('/v1/protections'), items('/v1/flows'),
      items('/v1/routes'), items('/v1/bgp/peers')])
    let network
    let problem
    try {
      const topology = await api.get('/v1/topology')
      problem = topology.problem
      network = JSON.parse(topology.nodeLink)
    } catch { /* it computes no paths */ }
    return { status, policies, protections, flows, routes, peers, network, problem }
  },
  controller: async () => {
    const [status, links, flows, moves, decisions] = await Promise.all([api.get('/v1/status'),
      items('/v1/links'), items('/v1/flows'), items('/v1/reroutes?moved=1'),
      items('/v1/reroutes')])
    return { status, links, flows: flows.slice(0, 1000), moves, decisions }
  },
}

// useDaemon keeps what the page knows up to date, until the daemon refuses.
function useDaemon(kind, refused) {
  const [known, setKnown] = useState()
  const [data, setData] = useState()
  const [fault, setFault] = useState()
  const look = useRef(() => {})
  useEffect(() => {
    if (!kind) return undefined
    const stop = new AbortController()
    const failed = (error) => {
      if (stop.signal.aborted) return
      if (error.status === 401) refused()
      setFault(error)
    }
    look.current = async () => {
      try {
        setData(await slow[kind]())
        setFault()
      } catch (error) {
        failed(error)
      }
    }
    // Samples come as often as the daemon likes; what is shown changes as often as the page can
    // afford, and not while nobody sees it: there are no frames then.
    let waiting
    let busy = false
    const show = () => requestAnimationFrame(() => {
      if (stop.signal.aborted) return
      const begun = performance.now()
      const sample = waiting
      waiting = undefined
      setKnown((before) => follow(before, sample))
      requestAnimationFrame(() => setTimeout(() => setTimeout(() => {
        busy = false
        if (waiting) begin()
      }, pause(performance.now() - begun))))
    })
    const begin = () => {
      busy = true
      show()
    }
    const follows = async () => {
      try {
        await api.stream('/v1/monitor', stop.signal, (sample) => {
          waiting = later(waiting, sample)
          if (!busy) begin()
        })
      } catch (error) {
        failed(error)
      }
      if (!stop.signal.aborted) setTimeout(follows, slowly)
    }
    look.current()
    const timer = setInterval(() => look.current(), slowly)
    // decisions of a controller, as they happen: each one is a reason to look, now and again
    let soon
    const decisions = async () => {
      try {
        await api.stream('/v1/events', stop.signal, () => {
          soon ??= setTimeout(() => {
            soon = undefined
            look.current()
          }, 200)
        })
      } catch (error) {
        failed(error)
      }
      if (!stop.signal.aborted) setTimeout(decisions, slowly)
    }
    if (kind === 'agent') follows()
    else decisions()
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [kind])
  return { known, data, fault, look: () => look.current() }
}

function Login({ done, fault }) {
  const enter = (event) => {
    event.preventDefault()
    api.keepToken(new FormData(event.target).get('token').trim())
    done()
  }
  return (
    <main class="login">
      <h1>Sextant</h1>
      <form onSubmit={enter}>
        <label>Token<input name="token" type="password" autocomplete="off" required /></label>
        <Fault error={fault} />
        <p class="buttons"><button type="submit" class="main">Enter</button></p>
      </form>
      <Empty why={'A token is needed. It stays in this tab, and goes nowhere but to this node.'}
        command="sextant token add LABEL --role read" />
    </main>
  )
}

// identify finds out what daemon this is, and what the caller may do.
async function identify() {
  const fragment = new URLSearchParams(location.hash.slice(1))
  if (fragment.has('code')) {
    history.replaceState(null, '', address('overview'))
    await api.redeem(fragment.get('code'))
  }
  const [caller, status] = await Promise.all([api.get('/v1/caller'), api.get('/v1/status')])
  return { caller, status, kind: status.node === undefined ? 'controller' : 'agent' }
}

function Console() {
  const [who, setWho] = useState()
  const [refusal, setRefusal] = useState()
  const [where, setWhere] = useState(route(location.hash))
  const [said, say] = useState('')
  const enter = async () => {
    try {
      setWho(await identify())
      setWhere(route(location.hash))
      setRefusal()
    } catch (error) {
      setRefusal(error)
    }
  }
  useEffect(() => {
    enter()
    const moved = () => {
      setWhere(route(location.hash))
      say('')
    }
    addEventListener('hashchange', moved)
    return () => removeEventListener('hashchange', moved)
  }, [])
  const daemon = useDaemon(who?.kind, () => {
    api.forgetToken()
    setWho()
  })
  if (!who) {
    return refusal && refusal.status !== 401 && !api.token()
      ? <main class="login"><h1>Sextant</h1><Fault error={refusal} /></main>
      : <Login done={enter} 
        fault={api.token() || refusal?.code === 'refused' ? refusal : undefined} />
  }
  const tell = (text) => { say(text); daemon.look() }
  const name = who.status.node ?? 'controller'
  const known = Object.hasOwn(views[who.kind], where.view) ? where.view : 'overview'
  const filter = (text) => {
    history.replaceState(null, '', address(known, text))
    setWhere({ view: known, filter: text })
  }
  return (
    <div>
      <header>
        <button type="button" class="skip"
          onClick={() => document.querySelector('main').focus()}>To the content</button>
        <h1>Sextant <span>{name}</span></h1>
        <nav aria-label="Views">
          {Object.entries(views[who.kind]).map(([view, title]) => (
            <a href={address(view)} aria-current={view === known ? 'page' : undefined}>{title}</a>
          ))}
        </nav>
        <label class="filter">Filter
          <input type="search" value={where.filter} placeholder="web -down"
            onInput={(event) => filter(event.target.value)} /></label>
        <p class="who">{who.caller.name} · role {who.caller.role}</p>
      </header>
      <main tabindex="-1">
        <Fault error={daemon.fault} />
        <p role="status" class="said">{said}</p>
        <View view={known} who={who} daemon={daemon} filter={where.filter} say={tell} />
      </main>
    </div>
  )
}

function View({ view, who, daemon, filter, say }) {
  const { known, data } = daemon
  const shared = { known, data, filter, say, caller: who.caller }
  if (!data || (who.kind === 'agent' && !known)) return <p>Waiting for the first answer…</p>
  if (who.kind === 'controller') {
    return view === 'reroutes' ? <Reroutes {...shared} /> : <ControllerNetwork {...shared} />
  }
  switch (view) {
    case 'services': return <Services {...shared} />
    case 'traffic': return <Traffic {...shared} />
    case 'paths': return <Paths {...shared} />
    case 'events': return <Events {...shared} since={opened} />
    case 'explain': return <Explain {...shared} />
    default: return <Overview {...shared} />
  }
}

function Overview({ known, data, filter }) {
  const { status, network, protections, problem } = data
  const faults = [...status.warnings, ...status.programs.filter((p) => p.fault)
    .map((p) => `${p.name} on ${p.interface ?? p.cgroup}: ${p.fault}`)]
  if (problem) faults.push(`The topology can’t be read anew: ${problem}`)
  const serves = known.sample.services.some((s) => s.edge)
  return (
    <div>
      <p class="facts"><span>version {status.version}</span>
        <span>{status.roles.join(', ')}</span>
        <span>since {new Date(status.startedAt).toLocaleString()}</span></p>
      {faults.map((text) => <p class="fault" role="alert">{text}</p>)}
      {serves && <Picture name="Services and backends" filter={filter}
        graph={edgeGraph(status.node, known)} />}
      {network && <Picture name="Network" filter={filter} 
        graph={ofNodeLink(network, status.node, protections)}
        empty={<Empty why="The topology has no nodes." command="sextant topology show" />} />}
      {!serves && !network && <Empty why={'This node has no edge services and computes no paths, ' +
        'so that there is nothing to draw; Services and Traffic show what it does.'}
        command="sextant status" />}
    </div>
  )
}

// ofNodeLink is the network that paths are computed on, with what protected paths do on its links.
function ofNodeLink(network, node, protections) {
  const names = network.nodes.map((n) => String(n.id)).sort()
  const uses = new Map()
  for (const p of protections) {
    for (const path of p.paths) {
      for (const link of path.links) {
        const key = link.split('>').sort().join('\n')
        uses.set(key, [...uses.get(key) ?? [], { ...path, of: p.name }])
      }
    }
  }
  const seen = new Map()
  for (const l of network.links ?? network.edges ?? []) {
    const [from, to] = [String(l.source), String(l.target)].sort()
    const key = `${from}\n${to}`
    const paths = uses.get(key) ?? []
    const roles = ['down', 'trial', 'carries', 'spare'].filter((r) =>
      paths.some((p) => p.role === r))
    seen.set(key, { from, to, state: roles[0], note: paths.length
      ? paths.map((p) => `${p.of} ${p.list}`).join(', ') : `weight ${l.weight ?? 1}` })
  }
  const first = [node, protections[0]?.from].find((name) => names.includes(name)) ?? names[0]
  return networkGraph(names, [...seen.values()], first)
}

render(<Console />, document.getElementById('console'))
