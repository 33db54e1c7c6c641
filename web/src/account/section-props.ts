import type { Route } from '../route.ts'
import type { Me } from './sign-in.ts'

export type SectionProps = { me: Me; route: Route }
