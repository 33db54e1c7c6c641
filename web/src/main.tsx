import { QueryClientProvider } from '@tanstack/react-query'
import { createHashHistory, RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { jwksQuery, queryClient } from './api.ts'
import { createAppRouter } from './router.tsx'
import { applyTheme, readTheme } from './theme.ts'
import './style.css'

applyTheme(readTheme())

void queryClient.prefetchQuery(jwksQuery)

const router = createAppRouter(createHashHistory())

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
