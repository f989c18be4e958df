// Reads the Markdown of docs/ into what the console's help shows: pages of sections of blocks. No HTML is made of it: the
// page draws the blocks. Their types are in src/pages/help/document.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

import { marked } from 'marked';

export const DOCS = join(dirname(fileURLToPath(import.meta.url)), '../../../docs');
// For those who change the programs. They would double the size for the others.
const FOR_CONTRIBUTORS = /(^|\/)(adr|design|contributing)\/|(^|\/)(architecture|benchmarks)\.md$/;

/** "get-started/install.md" is the page get-started/install, "concepts/README.md" is concepts. */
const pathOf = (file) => file.replace(/(^|\/)(README|index)\.md$/, '').replace(/\.md$/, '');

/** The anchor that a Git host gives a heading. `used` counts those of the file. */
export function anchorOf(heading, used = new Map()) {
  const base = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-');
  const count = used.get(base) ?? 0;
  used.set(base, count + 1);
  return count === 0 ? base : `${base}-${count}`;
}

/** Returns the address of a link: one of the web, one of the help, or nothing for a file that the help does not have. */
function addressOf(href, file, pages) {
  if (/^https?:\/\//.test(href)) return href;
  if (/^[a-z][a-z+.-]*:/i.test(href)) return '';
  const [target, anchor] = href.split('#');
  const path = target === '' ? pathOf(file) : pathOf(posix.normalize(posix.join(posix.dirname(file), target)).replace(/\/$/, ''));
  if (path === '' || path === '.') return '/help';
  return pages.has(path) ? `/help/${path}${anchor ? `#${anchor}` : ''}` : '';
}

const ENTITIES = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"', '&nbsp;': '\u00a0' };
// A line break of the file is a blank.
const plain = (text) => text.replace(/\s*\n\s*/g, ' ').replace(/&(?:lt|gt|amp|quot|nbsp);/g, (one) => ENTITIES[one]);

/** Joins texts that stand beside each other. */
function joined(parts) {
  const all = [];
  for (const part of parts) {
    if (typeof part === 'string' && typeof all.at(-1) === 'string') all[all.length - 1] += part;
    else all.push(part);
  }
  return all;
}

function inlines(tokens, link) {
  return joined((tokens ?? []).flatMap((token) => {
    switch (token.type) {
      case 'strong': return { bold: inlines(token.tokens, link) };
      case 'em': case 'del': return { italic: inlines(token.tokens, link) };
      case 'codespan': return { code: token.text };
      case 'link': {
        const to = link(token.href);
        return to ? { to, text: inlines(token.tokens, link) } : inlines(token.tokens, link);
      }
      case 'image': return `(Picture: ${token.text})`;
      case 'br': return '\n';
      case 'html': return /^<br/i.test(token.raw) ? '\n' : [];
      default: return token.tokens ? inlines(token.tokens, link) : plain(token.text ?? token.raw);
    }
  }));
}

function blocks(tokens, link) {
  return tokens.flatMap((token) => {
    switch (token.type) {
      case 'paragraph': case 'text': {
        const [only, more] = token.tokens ?? [];
        if (only?.type === 'image' && !more) return { kind: 'picture', text: only.text };
        return { kind: 'text', text: inlines(token.tokens ?? [token], link) };
      }
      case 'list': return { kind: 'list', ...(token.ordered && { from: token.start }), items: token.items.map((item) => blocks(item.tokens, link)) };
      case 'table': return { kind: 'table', rows: [token.header, ...token.rows].map((row) => row.map((cell) => inlines(cell.tokens, link))) };
      case 'code': return { kind: 'code', text: token.text, ...(token.lang && { language: token.lang }) };
      case 'blockquote': return { kind: 'quote', blocks: blocks(token.tokens, link) };
      case 'space': case 'hr': case 'html': case 'def': return [];
      default: return { kind: 'text', text: [plain(token.raw)] };
    }
  });
}

/** Reads a file. `pages` has the paths that links may lead to. */
export function readPage(file, text, pages) {
  const link = (href) => addressOf(href, file, pages);
  const used = new Map();
  const sections = [{ at: '', depth: 1, title: '', tokens: [] }];
  for (const token of marked.lexer(text)) {
    if (token.type !== 'heading') {
      sections.at(-1).tokens.push(token);
      continue;
    }
    const title = inlines(token.tokens, () => '').map((part) => (typeof part === 'string' ? part : part.code ?? part.bold ?? part.italic)).join('');
    const at = anchorOf(title, used);
    if (token.depth === 1 && sections[0].title === '') sections[0].title = title;
    else sections.push({ at, depth: token.depth, title, tokens: [] });
  }
  const path = pathOf(file);
  return { path, title: sections[0].title || path, sections: sections.map(({ tokens, ...section }) => ({ ...section, blocks: blocks(tokens, link) })) };
}

/** Returns the files of the help, in the order in which docs/README.md names them. */
export function documentFiles(folder = DOCS) {
  const files = readdirSync(folder, { recursive: true }).map((file) => file.split('\\').join('/'))
    .filter((file) => file.endsWith('.md') && pathOf(file) !== '' && !FOR_CONTRIBUTORS.test(file)).sort();
  const named = [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/\]\(([^)#]+)/g)].map(([, href]) => posix.normalize(href));
  const place = (file) => (named.includes(file) ? named.indexOf(file) : named.length);
  return files.sort((a, b) => place(a) - place(b));
}

/** Returns all pages of the help. */
export function readDocuments(folder = DOCS) {
  const files = documentFiles(folder);
  const paths = new Set(files.map(pathOf));
  return files.map((file) => readPage(file, readFileSync(join(folder, file), 'utf8'), paths));
}

const NAME = 'virtual:documents';

/** Vite: the module virtual:documents has the address of the documents as JSON, a file of its own. */
export function documents() {
  const json = () => JSON.stringify({ pages: readDocuments() });
  let isBuild = false;
  return {
    name: 'documents',
    config: (_config, { command }) => { isBuild = command === 'build'; },
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    load(id) {
      if (id !== `\0${NAME}`) return undefined;
      if (!isBuild) return "export default '/@documents.json';";
      return `export default import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: 'asset', name: 'documents.json', source: json() })};`;
    },
    configureServer(server) {
      server.middlewares.use('/@documents.json', (_request, response) => {
        response.setHeader('Content-Type', 'application/json');
        response.end(json());
      });
    },
  };
}
