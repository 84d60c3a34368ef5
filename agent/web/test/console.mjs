// Drives the console of an edge of examples/quickstart.yaml in Chromium, by roles and names:
// node console.mjs CHROMIUM ADDRESS. Prints what is wrong, and ends with 1 then.
import { chromium } from 'playwright-core'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const [program, address] = process.argv.slice(2)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const origin = new URL(address).origin
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
const wrong = []

const page = await browser.newPage()
page.setDefaultTimeout(20000)
page.on('request', (request) => {
  const url = request.url()
  if (!url.startsWith(origin) && !url.startsWith('data:')) wrong.push(`a request to ${url}`)
})
page.on('console', (message) => {
  if (message.type() === 'error') wrong.push(`the browser says: ${message.text()}`)
})
page.on('pageerror', (error) => wrong.push(error.message))

// check looks for what people with a keyboard, a screen reader or weak eyes can't use.
async function check(view) {
  const found = await page.evaluate(`${axe}; axe.run().then((r) => r.violations.map((v) =>
    v.id + ': ' + v.nodes.map((n) => n.target).join(', ')))`)
  wrong.push(...found.map((text) => `${view}: ${text}`))
  const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
  if (wide) wrong.push(`${view}: the page is wider than the window`)
}

const view = (name) => page.getByRole('navigation').getByRole('link', { name }).click()
const text = (words) => page.getByText(words).first().waitFor()

await page.goto(address)
const node = (name) => page.getByRole('link', { name })
const places = async () => JSON.stringify(await Promise.all(['edge, up', /^web1, /, /^web2, /]
  .map((name) => node(name).first().locator('rect').evaluate((rect) =>
    [rect.getAttribute('x'), rect.getAttribute('y')]))))
await node('edge, up').waitFor()
const before = await places()
if (page.url().includes('code')) wrong.push('the address still has the code')

await view('Services')
await page.getByRole('button', { name: 'Drain web2' }).first().click()
const dialog = page.getByRole('dialog', { name: 'Drain web2 of web?' })
await dialog.getByText('web2 gets no new connections of web; those that it has go on.').waitFor()
await dialog.getByText(/of new connections go to web1, web3\.$/).waitFor()
await check('the dialog')
await page.keyboard.press('Escape')
await dialog.waitFor({ state: 'detached' })
await page.getByRole('button', { name: 'Drain web2' }).first().press('Enter')
await dialog.getByRole('button', { name: 'Drain', exact: true }).press('Enter')
await page.getByRole('status').getByText('web: web2 is draining.').waitFor()
await page.getByRole('button', { name: 'Undrain web2' }).waitFor()
await view('Overview')
await node('web2, draining').waitFor()
if (await places() !== before) wrong.push('nodes of the picture have moved')

await page.getByLabel('Filter').fill('web3')
await page.getByText('filter “web3”').waitFor()
if (!page.url().endsWith('#overview?filter=web3')) wrong.push(`the address is ${page.url()}`)
await page.getByLabel('Filter').fill('')

await view('Explain')
await text('No flow was asked about yet.')
await page.getByLabel('Source').fill('[2001:db8:c::1]:40000')
await page.getByLabel('Destination').fill('[2001:db8:80::80]:80')
await page.getByRole('button', { name: 'Explain' }).click()
await page.getByRole('list', { name: 'The way of the packet' }).first().waitFor()
await page.getByRole('group', { name: /^Headers/ }).first().getByText('IPv6').first().waitFor()
for (const [name, words] of [['Events', 'Nothing has happened to services'],
  ['Paths', 'This node has no SR policies'], ['Traffic', 'What became of packets'],
  ['Services', 'draining'], ['Overview', 'As a table'], ['Explain', 'Explain a flow']]) {
  await view(name)
  await text(words)
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    for (const width of [1280, 820, 390]) {
      await page.setViewportSize({ width, height: 850 })
      if (width !== 820) await check(`${name}, ${colorScheme}, ${width}`)
      if (process.env.SHOTS) {
        await page.screenshot({ path: `${process.env.SHOTS}/${name}-${colorScheme}-${width}.png` })
      }
    }
  }
}
await browser.close()
for (const line of wrong) console.log(line)
process.exitCode = wrong.length ? 1 : 0
