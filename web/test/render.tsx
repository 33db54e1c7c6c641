/// <reference path="../src/vite-env.d.ts" />
import { QueryClientProvider } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { queryClient } from '../src/api.ts'

export const renderHtml = (node: ReactNode): string =>
  renderToStaticMarkup(<QueryClientProvider client={queryClient}>{node}</QueryClientProvider>)

/** The rendered text without tags, with one space between elements. */
export const renderText = (node: ReactNode): string =>
  renderHtml(node)
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
