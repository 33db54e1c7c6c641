/** Small functions that are asked for again and again, correct for their edge cases. */
type Snippet = { pattern: RegExp; note: string; typescript: string; python: string }

export const SNIPPETS: readonly Snippet[] = [
  {
    pattern: /\brevers\w{1,4}\b.{0,40}\bstring|\bstring.{0,20}\brevers/i,
    note: 'Splits by code points, so that characters outside the basic plane stay whole.',
    typescript: `export function reverseString(text: string): string {\n  return [...text].reverse().join('')\n}`,
    python: `def reverse_string(text: str) -> str:\n    return text[::-1]`,
  },
  {
    pattern: /\bpalindrom/i,
    note: 'Case and everything that is no letter or digit is ignored.',
    typescript: `export function isPalindrome(text: string): boolean {\n  const letters = [...text.toLowerCase()].filter((character) => /[\\p{L}\\p{N}]/u.test(character))\n  return letters.every((letter, i) => letter === letters[letters.length - 1 - i])\n}`,
    python: `def is_palindrome(text: str) -> bool:\n    letters = [character for character in text.lower() if character.isalnum()]\n    return letters == letters[::-1]`,
  },
  {
    pattern: /\bfizz ?buzz/i,
    note: 'Multiples of 3 and 5 come first, because they are multiples of both.',
    typescript: `export function fizzBuzz(limit: number): string[] {\n  return Array.from({ length: limit }, (_, i) => {\n    const n = i + 1\n    if (n % 15 === 0) return 'FizzBuzz'\n    if (n % 5 === 0) return 'Buzz'\n    if (n % 3 === 0) return 'Fizz'\n    return String(n)\n  })\n}`,
    python: `def fizz_buzz(limit: int) -> list[str]:\n    def word(n: int) -> str:\n        if n % 15 == 0:\n            return "FizzBuzz"\n        if n % 5 == 0:\n            return "Buzz"\n        if n % 3 == 0:\n            return "Fizz"\n        return str(n)\n    return [word(n) for n in range(1, limit + 1)]`,
  },
  {
    pattern: /\bfactorial/i,
    note: 'A negative number has no factorial and is refused.',
    typescript: `export function factorial(n: number): bigint {\n  if (!Number.isInteger(n) || n < 0) throw new RangeError('n must be a whole number from 0 on')\n  let product = 1n\n  for (let i = 2n; i <= BigInt(n); i++) product *= i\n  return product\n}`,
    python: `def factorial(n: int) -> int:\n    if n < 0:\n        raise ValueError("n must not be negative")\n    product = 1\n    for i in range(2, n + 1):\n        product *= i\n    return product`,
  },
  {
    pattern: /\bfibonacci/i,
    note: 'Counts from 0: the first two are 0 and 1. Takes n steps and no recursion.',
    typescript: `export function fibonacci(n: number): bigint {\n  let [current, next] = [0n, 1n]\n  for (let i = 0; i < n; i++) [current, next] = [next, current + next]\n  return current\n}`,
    python: `def fibonacci(n: int) -> int:\n    current, following = 0, 1\n    for _ in range(n):\n        current, following = following, current + following\n    return current`,
  },
  {
    pattern: /\bprime\b/i,
    note: 'Divisors are tried up to the square root.',
    typescript: `export function isPrime(n: number): boolean {\n  if (!Number.isInteger(n) || n < 2) return false\n  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false\n  return true\n}`,
    python: `def is_prime(n: int) -> bool:\n    if n < 2:\n        return False\n    divisor = 2\n    while divisor * divisor <= n:\n        if n % divisor == 0:\n            return False\n        divisor += 1\n    return True`,
  },
  {
    pattern: /\b(?:sum|add(?:s|ing)?|total)\b.{0,40}\b(?:array|list|numbers)\b/i,
    note: 'The sum of nothing is 0.',
    typescript: `export function sum(numbers: readonly number[]): number {\n  return numbers.reduce((total, value) => total + value, 0)\n}`,
    python: `def sum_numbers(numbers: list[float]) -> float:\n    total = 0.0\n    for value in numbers:\n        total += value\n    return total`,
  },
  {
    pattern: /\badd(?:s|ing)?\b.{0,20}\btwo numbers\b|\bsum of two\b/i,
    note: 'Nothing is converted: both must be numbers already.',
    typescript: `export function add(a: number, b: number): number {\n  return a + b\n}`,
    python: `def add(a: float, b: float) -> float:\n    return a + b`,
  },
  {
    pattern: /\b(?:max(?:imum)?|largest|biggest)\b.{0,40}\b(?:array|list|numbers|element)\b/i,
    note: 'There is no largest of nothing, so an empty list is refused.',
    typescript: `export function largest(numbers: readonly number[]): number {\n  if (numbers.length === 0) throw new RangeError('the list is empty')\n  return numbers.reduce((best, value) => (value > best ? value : best))\n}`,
    python: `def largest(numbers: list[float]) -> float:\n    if not numbers:\n        raise ValueError("the list is empty")\n    best = numbers[0]\n    for value in numbers[1:]:\n        if value > best:\n            best = value\n    return best`,
  },
  {
    pattern: /\b(?:average|mean)\b.{0,40}\b(?:array|list|numbers)\b/i,
    note: 'There is no mean of nothing, so an empty list is refused.',
    typescript: `export function mean(numbers: readonly number[]): number {\n  if (numbers.length === 0) throw new RangeError('the list is empty')\n  return numbers.reduce((total, value) => total + value, 0) / numbers.length\n}`,
    python: `def mean(numbers: list[float]) -> float:\n    if not numbers:\n        raise ValueError("the list is empty")\n    return sum(numbers) / len(numbers)`,
  },
  {
    pattern: /\b(?:duplicates?|dedup\w{0,8}|unique)\b/i,
    note: 'The first of equal elements stays, in the order given.',
    typescript: `export function unique<T>(items: readonly T[]): T[] {\n  return [...new Set(items)]\n}`,
    python: `def unique(items: list) -> list:\n    return list(dict.fromkeys(items))`,
  },
  {
    pattern: /\bbinary search/i,
    note: 'The list must be sorted; -1 when the value is not in it.',
    typescript: `export function binarySearch(sorted: readonly number[], wanted: number): number {\n  let low = 0\n  let high = sorted.length - 1\n  while (low <= high) {\n    const middle = (low + high) >> 1\n    if (sorted[middle] === wanted) return middle\n    if (sorted[middle]! < wanted) low = middle + 1\n    else high = middle - 1\n  }\n  return -1\n}`,
    python: `def binary_search(items: list[int], wanted: int) -> int:\n    low, high = 0, len(items) - 1\n    while low <= high:\n        middle = (low + high) // 2\n        if items[middle] == wanted:\n            return middle\n        if items[middle] < wanted:\n            low = middle + 1\n        else:\n            high = middle - 1\n    return -1`,
  },
  {
    pattern: /\b(?:gcd|greatest common divisor)\b/i,
    note: "Euclid's algorithm; the sign is dropped.",
    typescript: `export function gcd(a: number, b: number): number {\n  while (b !== 0) [a, b] = [b, a % b]\n  return Math.abs(a)\n}`,
    python: `def gcd(a: int, b: int) -> int:\n    while b:\n        a, b = b, a % b\n    return abs(a)`,
  },
  {
    pattern: /\bcount\w{0,3}\b.{0,30}\bwords?\b|\bword count/i,
    note: 'Words are what white space separates; an empty text has none.',
    typescript: `export function countWords(text: string): number {\n  return text.split(/\\s+/).filter((word) => word !== '').length\n}`,
    python: `def count_words(text: str) -> int:\n    return len(text.split())`,
  },
  {
    pattern: /\bvowels?\b/i,
    note: 'Counts a, e, i, o and u, in either case.',
    typescript: `export function countVowels(text: string): number {\n  return [...text.toLowerCase()].filter((letter) => 'aeiou'.includes(letter)).length\n}`,
    python: `def count_vowels(text: str) -> int:\n    return sum(1 for letter in text.lower() if letter in "aeiou")`,
  },
  {
    pattern: /\bleap year/i,
    note: 'Every fourth year, not every hundredth, but every four hundredth.',
    typescript: `export function isLeapYear(year: number): boolean {\n  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0\n}`,
    python: `def is_leap_year(year: int) -> bool:\n    return (year % 4 == 0 and year % 100 != 0) or year % 400 == 0`,
  },
  {
    pattern: /\bdebounce/i,
    note: 'Calls once, when nothing has come for the delay.',
    typescript: `export function debounce<A extends unknown[]>(call: (...values: A) => void, delayMs: number) {\n  let timer: ReturnType<typeof setTimeout> | undefined\n  return (...values: A) => {\n    clearTimeout(timer)\n    timer = setTimeout(() => call(...values), delayMs)\n  }\n}`,
    python: `import threading\n\ndef debounce(call, delay_seconds):\n    timer = None\n    def debounced(*values):\n        nonlocal timer\n        if timer is not None:\n            timer.cancel()\n        timer = threading.Timer(delay_seconds, call, values)\n        timer.start()\n    return debounced`,
  },
  {
    pattern: /\b(?:celsius|fahrenheit)\b/i,
    note: 'From Celsius to Fahrenheit, and back.',
    typescript: `export const toFahrenheit = (celsius: number) => (celsius * 9) / 5 + 32\nexport const toCelsius = (fahrenheit: number) => ((fahrenheit - 32) * 5) / 9`,
    python: `def to_fahrenheit(celsius: float) -> float:\n    return celsius * 9 / 5 + 32\n\ndef to_celsius(fahrenheit: float) -> float:\n    return (fahrenheit - 32) * 5 / 9`,
  },
  {
    pattern: /\bflatten/i,
    note: 'One level of nesting becomes none; deeper lists stay as they are.',
    typescript: `export function flatten<T>(lists: readonly (readonly T[])[]): T[] {\n  return lists.flatMap((list) => [...list])\n}`,
    python: `def flatten(lists: list[list]) -> list:\n    return [item for items in lists for item in items]`,
  },
]
