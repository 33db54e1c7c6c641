import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import { CliError } from './cli-error.ts'

/** Readers of arguments and options; what they refuse is a usage error. */
export function wholeNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError('It must be a whole number above 0.')
  return number
}

export function usdc(text: string): number {
  const number = Number(text)
  if (!/^\d+(\.\d{1,6})?$/.test(text) || number <= 0)
    throw new InvalidArgumentError('It must be an amount of USDC above 0 with at most six decimals, such as 0.25.')
  return number
}

export const list = (text: string, previous: string[] = []): string[] => [
  ...previous,
  ...text.split(',').map((item) => item.trim()),
]

/** The argument itself, or standard input for `-`. */
export const textOrInput = (text: string): string => (text === '-' ? readFileSync(0, 'utf8') : text)

export function jsonFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (cause) {
    throw new CliError(`${file} cannot be read as JSON: ${(cause as Error).message}`)
  }
}
