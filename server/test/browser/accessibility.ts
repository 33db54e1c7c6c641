import type { Page } from 'playwright-core'

export type Flaws = { unnamed: string[]; faint: string[] }

/** Runs in the page: controls without a name, and text that is too faint for WCAG AA (4.5 to 1). */
export const findFlaws = (page: Page): Promise<Flaws> =>
  page.evaluate(() => {
    const say = (element: Element) => `${element.tagName} ${element.className} ${element.textContent?.slice(0, 40)}`
    const named = (element: Element) =>
      Boolean(
        element.getAttribute('aria-label') ||
          (element as HTMLInputElement).labels?.length ||
          (['A', 'BUTTON'].includes(element.tagName) && element.textContent?.trim()),
      )
    const unnamed = [...document.querySelectorAll('a, button, input, select, textarea, meter')]
      .filter((element) => !named(element))
      .map(say)

    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })!
    const rgba = (colour: string): number[] => {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
      return [...canvas.getImageData(0, 0, 1, 1).data]
    }
    const luminance = (colour: number[]) => {
      const [red, green, blue] = colour.map((part) => {
        const share = part / 255
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      }) as [number, number, number]
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
    const backgroundOf = (element: Element | null): number[] => {
      if (!element) return [255, 255, 255, 255]
      const colour = rgba(getComputedStyle(element).backgroundColor)
      return colour[3] === 255 ? colour : backgroundOf(element.parentElement)
    }
    const contrast = (element: Element) => {
      const [one, other] = [rgba(getComputedStyle(element).color), backgroundOf(element)].map(luminance) as [
        number,
        number,
      ]
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
    }
    const faint = [...document.querySelectorAll('body *')]
      .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim()))
      .filter((element) => element.checkVisibility() && !(element as HTMLButtonElement).disabled)
      .filter((element) => contrast(element) < 4.5)
      .map((element) => `${contrast(element).toFixed(2)} ${say(element)}`)
    return { unnamed, faint }
  })

/** Whether the page is wider than the screen: then a reader must scroll sideways to read a sentence. */
export const overflows = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
