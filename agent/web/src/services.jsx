import { h } from 'preact'
import { useState } from 'preact/hooks'
import { get, write } from './api.js'
import { amount, drainPlan, matches, may, percent, rate } from './state.js'
import { Dialog, Empty, Fault, Section, Spark, Table, stateCell } from './parts.jsx'

const path = (service, backend) =>
  `/v1/services/${encodeURIComponent(service)}/backends/${encodeURIComponent(backend)}`

// Change says what draining a backend, or taking it back, will do, and does it.
function Change({ change, close, done }) {
  const [fault, setFault] = useState()
  const { service, backend, state, connections } = change
  const drains = state === 'draining'
  const { plan, last } = drains ? drainPlan(service, backend, connections) : {
    plan: [`${backend.name} gets new connections of ${service.name} again.`] }
  const act = async (event) => {
    event.preventDefault()
    try {
      const answer = await write('PUT', path(service.name, backend.name), { state },
        { 'If-Match': '*' })
      done([`${service.name}: ${backend.name} is ${state}.`, ...answer.warnings ?? []].join(' '))
    } catch (error) {
      setFault(error)
    }
  }
  return (
    <Dialog title={`${drains ? 'Drain' : 'Undrain'} ${backend.name} of ${service.name}?`}
      close={close}>
      <form onSubmit={act}>
        {plan.map((line) => <p class={last && line === plan.at(-1) ? 'fault' : ''}>{line}</p>)}
        <Fault error={fault} />
        <p class="buttons">
          <button type="submit" class="main">{drains ? 'Drain' : 'Undrain'}</button>
          <button type="button" onClick={close}>Cancel</button>
        </p>
      </form>
    </Dialog>
  )
}

export function Services({ known, caller, filter, say }) {
  const [change, setChange] = useState()
  const services = known.sample.services
  const begin = async (service, backend, state) => {
    let connections
    try {
      connections = (await get(`${path(service.name, backend.name)}/connections`)).connections
    } catch { /* its host does not tell */ }
    setChange({ service, backend, state, connections })
  }
  if (!services.length) {
    return <Section title="Services"><Empty why={'This node has no services: its node file has ' +
      'none in edge.services or host.services.'} command="sextant config show" /></Section>
  }
  const wanted = (s) => matches(filter, [s.name]) || s.edge.backends.some((b) =>
    matches(filter, [s.name, b.name, b.effective, b.sid, b.source, b.health?.status ?? '']))
  const edge = services.filter((s) => s.edge && wanted(s))
  const host = services.filter((s) => s.host)
  return (
    <div>
      {!edge.length && !host.length && <Empty why={'No service and no backend matches the ' +
        `filter “${filter}”.`} command="sextant backend list" />}
      {edge.map((s) => (
        <Section key={s.name} title={`${s.name} · ${endpoint(s)}`}>
          {s.edge.panic && <p class="fault" role="alert">Too few backends are healthy: all that
            should be up are used.</p>}
          <p class="facts">
            <span>{rate(known.rates[`service/edge/${s.name}`])} packets</span>
            <Spark values={known.history[`service/edge/${s.name}`]} />
            <span>policy {s.edge.policy}</span><span>{s.edge.candidates} candidates</span>
            {s.edge.newConnections && <span>
              {amount(s.edge.newConnections.refused)} new connections over the limit</span>}
          </p>
          <Table caption={`Backends of ${s.name}`} filter={filter}
            columns={['Backend', 'State', 'Change', { name: 'Packets', number: true },
              { name: 'Share', number: true }, { name: 'Weight', number: true }, 'Health', 'SID',
              'Source']}
            rows={s.edge.backends.map((b) => ({
              key: b.name, also: s.name, cells: [b.name, stateCell(b.effective),
                action(b, caller, (state) => begin(s, b, state)),
                rate(known.rates[`backend/${s.name}/${b.name}`]),
                percent(b.buckets, s.edge.buckets), b.weight,
                b.health ? stateCell(b.health.status) : 'no check', b.sid, b.source],
            }))}
            empty={<Empty why={`${s.name} has no backends: clients get no answer.`}
              command={`sextant backend add ${s.name} NAME --sid SID`} />} />
        </Section>
      ))}
      {host.length > 0 && (
        <Section title="On this host">
          <Table caption="Services of this host" filter={filter}
            columns={['Service', 'Endpoint', 'Acceptance', { name: 'Busy', number: true },
              { name: 'Threshold', number: true }, { name: 'Accepted', number: true },
              { name: 'Passed on', number: true }, { name: 'Refused share', number: true }]}
            rows={host.map((s) => ({ key: s.name, cells: [s.name, endpoint(s),
              s.host.accept.policy, s.host.busy, s.host.threshold, amount(s.host.accepted),
              amount(s.host.refused), percent(s.host.refused, s.host.offered)] }))} />
        </Section>
      )}
      {change && <Change change={change} close={() => setChange()}
        done={(text) => { setChange(); say(text) }} />}
    </div>
  )
}

const endpoint = (s) => {
  const vip = s.vip.includes(':') ? `[${s.vip}]` : s.vip
  return `${s.protocol} ${vip}:${s.port || 'any'}`
}

function action(backend, caller, begin) {
  if (!may(caller, 'operate')) return 'needs role operate'
  const drains = backend.state === 'up'
  return { text: '', show: (
    <button type="button" onClick={() => begin(drains ? 'draining' : 'up')}
      aria-label={`${drains ? 'Drain' : 'Undrain'} ${backend.name}`}>
      {drains ? 'Drain…' : 'Undrain…'}</button>
  ) }
}
