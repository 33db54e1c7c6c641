import { routeHref } from '../route.ts'

const sectionOfPrefix: Record<string, string> = {
  run: 'runs',
  apr: 'approvals',
  pol: 'policies',
  whk: 'webhooks',
  chn: 'channels',
  mnd: 'mandates',
}

/** The page of what an audit event is about, where there is one. */
export function subjectHref(subject: string): string | undefined {
  const prefix = subject.split('_', 1)[0]!
  if (prefix === 'rcpt') return routeHref(['receipts', subject])
  if (prefix === 'key') return routeHref(['account', 'keys'])
  const section = sectionOfPrefix[prefix]
  return section && subject !== prefix ? routeHref(['account', section, subject]) : undefined
}
