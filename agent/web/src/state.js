// What the page knows: pure functions of what the daemon told.

// route reads the part of the address behind #: the view, and its filter.
export function route(hash) {
  const [view, query] = hash.replace(/^#/, '').split('?')
  const parameters = new URLSearchParams(query)
  return { view: view || 'overview', filter: parameters.get('filter') ?? '' }
}

export const address = (view, filter) =>
  `#${view}${filter ? `?${new URLSearchParams({ filter })}` : ''}`

// matches says whether a row has all words of a filter, and none of those behind a minus.
export function matches(filter, cells) {
  const text = cells.join(' ').toLowerCase()
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) =>
    word.length > 1 && word[0] === '-' ? !text.includes(word.slice(1)) : text.includes(word))
}

const maxHistory = 60

// later is what two samples say together: the state of the later one, and the events of both.
export const later = (before, sample) => before
  ? { ...sample, events: [...before.events ?? [], ...sample.events ?? []] } : sample

// pause is how long to wait after a picture that took so many ms: the page leaves most of its core
// to others, and rates that change more often than this cannot be read.
export const pause = (ms) => Math.max(100, 6 * ms)

// follow adds a sample to what is known: rates are differences to the one before.
export function follow(before, sample) {
  const seconds = before ? (new Date(sample.time) - new Date(before.sample.time)) / 1000 : 0
  const rates = {}
  const add = (name, was, is) => {
    // a counter that went back began anew
    if (seconds > 0 && was !== undefined) rates[name] = Math.max(0, is - was) / seconds
  }
  const counts = countsOf(sample)
  for (const [name, count] of Object.entries(counts)) add(name, before?.counts[name], count)
  const history = { ...before?.history }
  for (const [name, rate] of Object.entries(rates)) {
    if (name.startsWith('backend/')) continue // no view draws it
    history[name] = [...(history[name] ?? []), rate].slice(-maxHistory)
  }
  const events = [...(sample.events ?? []).toReversed(), ...(before?.events ?? [])].slice(0, 500)
  return { sample, counts, rates, history, events }
}

// countsOf names every counter of a sample.
function countsOf(sample) {
  const counts = {}
  for (const s of sample.services) {
    counts[`service/${s.role}/${s.name}`] = s.packets
    counts[`bytes/${s.role}/${s.name}`] = s.bytes
    for (const b of s.edge?.backends ?? []) counts[`backend/${s.name}/${b.name}`] = b.packets
  }
  for (const c of sample.counters) {
    for (const [name, value] of Object.entries(c)) {
      if (name.endsWith('Packets')) counts[`outcome/${c.role}/${name.slice(0, -7)}`] = value
    }
    for (const d of c.drops) counts[`drop/${c.role}/${d.reason}`] = d.packets
  }
  return counts
}

// words makes of handedToKernel: handed to kernel.
export const words = (name) => name.replaceAll('_', ' ')
  .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

const units = ['', ' k', ' M', ' G', ' T']

// rate writes a number of things per second.
export function rate(value) {
  if (value === undefined) return '–'
  return `${amount(value)}/s`
}

export function amount(value) {
  let unit = 0
  for (; value >= 9999.5 && unit < units.length - 1; unit++) value /= 1000
  return (value < 10 && value % 1 ? value.toFixed(1) : Math.round(value)) + units[unit]
}

export const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(1)} %` : '–'

const roles = ['read', 'operate', 'admin']

export const may = (caller, role) => roles.indexOf(caller?.role) >= roles.indexOf(role)

// drainPlan says what draining a backend will do.
export function drainPlan(service, backend, connections) {
  const taking = service.edge.backends.filter((b) => b.effective === 'up')
  const others = taking.filter((b) => b.name !== backend.name)
  const plan = [`${backend.name} gets no new connections of ${service.name}; those that it has ` +
    'go on.']
  if (connections !== undefined) {
    plan.push(`It has ${connections} open connection${connections === 1 ? '' : 's'} of it now.`)
  }
  if (service.edge.buckets && backend.buckets) {
    plan.push(`Its ${percent(backend.buckets, service.edge.buckets)} of new connections go to ` +
      (others.length ? `${others.map((b) => b.name).join(', ')}.` : 'nobody.'))
  }
  const last = backend.effective === 'up' && others.length === 0
  if (last) {
    plan.push('No other backend takes new connections: they will go to draining backends as long ' +
      'as there are any, and fail then.')
  }
  return { plan, last }
}
