import { defineConfig } from 'vite';

import { documents } from './documents.mjs';

// The daemon that `vite` proxies to; `./dev console` starts one and names it.
const daemon = process.env.GITOPS_DAEMON ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [documents()],
  // JSX without a plugin.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // they know light-dark()
    // Nothing inline: the policy of the page allows scripts and styles by address alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  server: {
    host: '127.0.0.1',
    proxy: Object.fromEntries(
      ['/console/api', '/2.0/api', '/api'].map((path) => [path, { target: daemon, changeOrigin: false }]),
    ),
  },
});
