import type { Page } from 'playwright-core'

export type AccessibilityIssues = { unnamed: string[]; lowContrast: string[] }

/** Runs in the page: controls without a name, and text below the WCAG AA contrast of 4.5 to 1. */
export const findAccessibilityIssues = (page: Page): Promise<AccessibilityIssues> =>
  page.evaluate(() => {
    const describeElement = (element: Element) =>
      `${element.tagName} ${element.className} ${element.textContent?.slice(0, 40)}`
    const hasName = (element: Element) =>
      Boolean(
        element.getAttribute('aria-label') ||
          (element as HTMLInputElement).labels?.length ||
          (['A', 'BUTTON'].includes(element.tagName) && element.textContent?.trim()),
      )
    const unnamed = [...document.querySelectorAll('a, button, input, select, textarea, meter')]
      .filter((element) => !hasName(element))
      .map(describeElement)

    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })!
    const toRgba = (colour: string): number[] => {
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
      const colour = toRgba(getComputedStyle(element).backgroundColor)
      return colour[3] === 255 ? colour : backgroundOf(element.parentElement)
    }
    const contrast = (element: Element) => {
      const [textLuminance, backgroundLuminance] = [toRgba(getComputedStyle(element).color), backgroundOf(element)].map(
        luminance,
      ) as [number, number]
      return (
        (Math.max(textLuminance, backgroundLuminance) + 0.05) / (Math.min(textLuminance, backgroundLuminance) + 0.05)
      )
    }
    const lowContrast = [...document.querySelectorAll('body *')]
      .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim()))
      .filter((element) => element.checkVisibility() && !(element as HTMLButtonElement).disabled)
      .filter((element) => contrast(element) < 4.5)
      .map((element) => `${contrast(element).toFixed(2)} ${describeElement(element)}`)
    return { unnamed, lowContrast }
  })

/** Whether the page is wider than the screen and needs horizontal scrolling. */
export const overflows = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
