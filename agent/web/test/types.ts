// What the types of the API have to say: tsc compiles this, and nothing runs it.
import type { components, paths } from '../api.d.ts'

type Services = paths['/v1/services']['get']['responses']['200']['content']['application/json']

export const names = (list: Services): string[] => list.items.map(service => service.name)
// @ts-expect-error: a service has no such field
export const none = (list: Services) => list.items.map(service => service.nonsense)
export const drained: components['schemas']['BackendSpec'] = { state: 'draining' }
// @ts-expect-error: no such state
export const wrong: components['schemas']['BackendSpec'] = { state: 'asleep' }
