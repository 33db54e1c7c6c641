import { lazyRouteComponent } from '@tanstack/react-router'
import type { ComponentType } from 'react'

export type LazyComponent<Props> = ComponentType<Props> & { preload?: () => Promise<void> }

/** A component whose script is loaded when it is first shown, or before when its link is pointed at. */
export const lazyComponent = <Props>(load: () => Promise<ComponentType<Props>>) =>
  lazyRouteComponent(async () => ({
    default: (await load()) as ComponentType<unknown>,
  })) as unknown as LazyComponent<Props>
