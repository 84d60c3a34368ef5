// How the page talks to the daemon that it came from. No request goes anywhere else.

const key = 'sextant-token'

export const token = () => sessionStorage.getItem(key)
export const keepToken = (text) => sessionStorage.setItem(key, text)
export const forgetToken = () => sessionStorage.removeItem(key)

// Refusal is an answer that is not the one that was asked for.
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message)
    this.status = status
    this.code = code
  }
}

async function send(path, options = {}) {
  const headers = { ...options.headers }
  if (token()) headers.Authorization = `Bearer ${token()}`
  let response
  try {
    response = await fetch(path, { ...options, headers, cache: 'no-store' })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Refusal(0, 'unreachable', 'the daemon does not answer; see that it runs')
  }
  if (response.ok) return response
  let fault = {}
  try {
    fault = (await response.json()).error ?? {}
  } catch { /* it is not an answer of the API */ }
  throw new Refusal(response.status, fault.code,
    fault.message ?? `the daemon answered ${response.status}`)
}

export const get = async (path) => (await send(path)).json()

export async function write(method, path, body, headers = {}) {
  const response = await send(path, { method, headers, body: JSON.stringify(body) })
  return response.json()
}

// redeem changes the code of the address, which holds once, for a token.
export async function redeem(code) {
  const answer = await write('POST', '/console/session', { code })
  keepToken(answer.token)
}

// stream calls each with the values of a stream of server-sent events, until it ends.
export async function stream(path, signal, each) {
  const response = await send(path, { signal, headers: { Accept: 'text/event-stream' } })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ;) {
    const { value, done } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop()
    for (const line of blocks.flatMap((block) => block.split('\n'))) {
      if (line.startsWith('data: ')) each(JSON.parse(line.slice(6)))
    }
  }
}
