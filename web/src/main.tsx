import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { jwksQuery, queryClient } from './api.ts'
import { App } from './app.tsx'
import { applyTheme, readTheme } from './theme.ts'
import './style.css'

applyTheme(readTheme())

void queryClient.prefetchQuery(jwksQuery)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
