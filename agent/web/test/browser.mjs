// A page of the console in Chromium, and what is common to its tests.
import { chromium } from 'playwright-core'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

// flags for a browser that is alone with the page. Each start has a profile of its own.
export const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync']

// open opens the page of the command line, which is CHROMIUM ADDRESS, and collects what is wrong.
export async function open() {
  const [program, address] = process.argv.slice(2)
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  const origin = new URL(address).origin
  const browser = await chromium.launch({ executablePath: program, args: flags })
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

  // check looks for what people with a keyboard, a screen reader or weak eyes can't use, and for
  // what is cut: tables, and the page, are as wide as the window at most.
  const check = async (view) => {
    const found = await page.evaluate(`${axe}; axe.run().then((r) => r.violations.map((v) =>
      v.id + ': ' + v.nodes.map((n) => n.target).join(', ')))`)
    wrong.push(...found.map((text) => `${view}: ${text}`))
    const cut = await page.evaluate(() => [document.documentElement,
      ...document.querySelectorAll('.scroll:has(table)')].filter((e) => e.scrollWidth >
        e.clientWidth).map((e) => e.getAttribute('aria-label') ?? 'the page'))
    wrong.push(...cut.map((what) => `${view}: ${what} is wider than the window`))
  }

  // look checks a view at three widths, light and dark, and keeps pictures where they are wanted.
  const look = async (name) => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      for (const width of [1280, 820, 390]) {
        await page.setViewportSize({ width, height: 850 })
        await check(`${name}, ${colorScheme}, ${width}`)
        if (process.env.SHOTS) await page.screenshot({ fullPage: true,
          path: `${process.env.SHOTS}/${name}-${colorScheme}-${width}.png` })
      }
    }
    await page.setViewportSize({ width: 1280, height: 850 })
  }
  const view = (name) => page.getByRole('navigation').getByRole('link', { name }).click()
  const text = (words) => page.getByText(words).first().waitFor()
  const end = async () => {
    await browser.close()
    for (const line of wrong) console.log(line)
    process.exitCode = wrong.length ? 1 : 0
  }
  await page.goto(address)
  return { page, wrong, check, look, view, text, end }
}
