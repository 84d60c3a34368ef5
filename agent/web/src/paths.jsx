import { h } from 'preact'
import { useState } from 'preact/hooks'
import { write } from './api.js'
import { amount, may, percent } from './state.js'
import { Dialog, Empty, Fault, Section, Table, stateCell } from './parts.jsx'

export const flowText = (f) => `${f.source} → ${f.destination} ${f.protocol}`

const ms = (value) => value === undefined || value === null ? '–' : `${value.toFixed(2)} ms`

// Pin gives a flow a path that nothing else changes, and says so before.
export function Pin({ title, field, hint, says, send, close, done }) {
  const [fault, setFault] = useState()
  const act = async (event) => {
    event.preventDefault()
    const form = new FormData(event.target)
    const text = (name) => form.get(name).trim()
    const flow = { source: text('source'), destination: text('destination'),
      protocol: form.get('protocol') }
    try {
      await send(flow, text('path').split(/[\s,]+/).filter(Boolean))
      done(`${flowText(flow)} has its path.`)
    } catch (error) {
      setFault(error)
    }
  }
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={act}>
        <p>{says}</p>
        <FlowFields />
        <label>{field}<input name="path" required placeholder={hint} /></label>
        <Fault error={fault} />
        <p class="buttons">
          <button type="submit" class="main">Give the path</button>
          <button type="button" onClick={close}>Cancel</button>
        </p>
      </form>
    </Dialog>
  )
}

export const FlowFields = () => (
  <div class="fields">
    <label>Source
      <input name="source" required placeholder="[2001:db8:c::1]:40000" /></label>
    <label>Destination
      <input name="destination" required placeholder="[2001:db8:80::80]:80" /></label>
    <label>Protocol
      <select name="protocol"><option>tcp</option><option>udp</option></select></label>
  </div>
)

export function Paths({ data, caller, filter, say }) {
  const [pinning, setPinning] = useState(false)
  const { policies, protections, flows, routes, peers } = data
  const unpin = async (flow) => {
    try {
      await write('DELETE', '/v1/flows', flow)
      say(`The rules choose for ${flowText(flow)} again.`)
    } catch (error) {
      say(error.message)
    }
  }
  return (
    <div>
      <Policies policies={policies} filter={filter} />
      <Section title="Flows with paths of their own">
        {may(caller, 'operate') && policies.length > 0 && <p>
          <button type="button" onClick={() => setPinning(true)}>Give a flow a path…</button></p>}
        <Table caption="Flows with paths of their own" filter={filter}
          columns={['Flow', 'Segments', { name: 'Lasts', number: true }, 'Change']}
          rows={flows.map((f) => ({ key: flowText(f.flow), cells: [flowText(f.flow),
            f.segments.join(' '), `${Math.round(f.seconds)} s`,
            may(caller, 'operate') ? { text: '', show: <button type="button"
              onClick={() => unpin(f.flow)}
              aria-label={`Remove the path of ${flowText(f.flow)}`}>Remove</button> }
              : 'needs role operate'] }))}
          empty={<Empty why="No flow has a path of its own: the rules of policies choose for all."
            command="sextant flow list" />} />
      </Section>
      <Protections protections={protections} filter={filter} />
      <Section title="Routing">
        <Table caption="BGP neighbors" filter={filter} columns={['Neighbor', 'State', 'Why']}
          rows={peers.map((p) => ({ key: p.address, cells: [p.address, p.state,
            p.reason ?? ''] }))}
          empty={<Empty why="This node speaks no BGP." command="sextant bgp peers" />} />
        <Table caption="Routes of VRFs" filter={filter} columns={['Prefix', 'VRF', 'Next hops']}
          rows={routes.map((r) => ({ key: `${r.vrf} ${r.prefix}`, cells: [r.prefix, r.vrf,
            r.nextHops.map((n) => n.segments.join(' ')).join(' | ') || 'none'] }))} />
      </Section>
      {pinning && <Pin title="Give a flow a path" field="Segments, in the order of travel"
        hint="fcbb:bb00:1:: fcbb:bb00:2::" close={() => setPinning(false)}
        says={'Its packets take this segment list in front of all rules of this head-end, for one ' +
          'hour; no other flow changes. If the list leads nowhere, the flow ends.'}
        send={(flow, segments) => write('PUT', '/v1/flows', { flow, segments, seconds: 3600 })}
        done={(text) => { setPinning(false); say(text) }} />}
    </div>
  )
}

function Policies({ policies, filter }) {
  const rows = policies.flatMap((policy) => policy.paths.flatMap((p) => p.lists.map((l) => ({
    key: `${policy.name}/${p.name}/${l.name}`, cells: [policy.name, p.name,
      stateCell(p.active ? 'active' : 'not used'), l.name, l.segments.join(' '),
      stateCell(l.state), percent(l.share, 1), amount(l.packets)] }))))
  return (
    <Section title="SR policies">
      {policies.filter((p) => !p.activePath).map((p) => <p class="fault" role="alert">
        {p.name} has no valid path: its packets {p.dropIfInvalid ? 'are dropped' : 'go without'}.
      </p>)}
      <Table caption="Segment lists of policies" filter={filter} rows={rows}
        columns={['Policy', 'Path', 'State', 'List', 'Segments', 'Marked',
          { name: 'Share', number: true }, { name: 'Packets', number: true }]}
        empty={<Empty why="This node has no SR policies: it is no head-end, or has none."
          command="sextant policy list" />} />
    </Section>
  )
}

function Protections({ protections, filter }) {
  const rows = protections.flatMap((p) => p.paths.map((path) => ({
    key: `${p.name}/${path.list}`, cells: [p.name, stateCell(p.state), path.list,
      stateCell(path.role), path.links.join(', '), path.probes, ms(path.rttMs || undefined),
      percent(path.loss, 1), path.copyLoss === null ? '–' : percent(path.copyLoss, 1),
      amount(path.packets)] })))
  return (
    <Section title="Protections">
      {protections.filter((p) => p.reason).map((p) => <p class="fault" role="alert">
        {p.name}: {p.reason}</p>)}
      <Table caption="Paths of protections" filter={filter} rows={rows}
        columns={['Protection', 'State', 'Path', 'Role', 'Links', 'Probes',
          { name: 'RTT', number: true }, { name: 'Probe loss', number: true },
          { name: 'Copy loss', number: true }, { name: 'Packets', number: true }]}
        empty={<Empty why="No traffic of this node is protected over disjoint paths."
          command="sextant protect list" />} />
    </Section>
  )
}
