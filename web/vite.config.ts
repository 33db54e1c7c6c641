import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  esbuild: { jsx: 'automatic' },
  build: { outDir: 'dist', emptyOutDir: true, target: 'es2022', modulePreload: { polyfill: false } },
})
