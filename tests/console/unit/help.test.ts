import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { anchorOf, readDocuments, readPage } from '../../../apps/control-plane/console/documents.mjs';
import { anchorOf as anchorIn, groupsOf, pageAt, plainText, type Page } from '../../../apps/control-plane/console/src/pages/help/document';
import { indexOf, marked, search, unknownWords, wordsOf } from '../../../apps/control-plane/console/src/pages/help/search';

const read = (text: string, file = 'guides/move.md', pages = ['guides/move', 'guides/other', 'concepts']): Page => readPage(file, text, new Set(pages)) as Page;
const blocksOf = (text: string) => read(text).sections[0]!.blocks;

describe('a page of the documents', () => {
  it('is split at its headings', () => {
    const page = read('# Move\nFirst.\n## How `it` works\nSecond.\n### Deeper\n## How it works\n');
    expect(page).toMatchObject({ path: 'guides/move', title: 'Move' });
    expect(page.sections.map(({ at, depth, title }) => [at, depth, title])).toEqual([['', 1, 'Move'], ['how-it-works', 2, 'How it works'], ['deeper', 3, 'Deeper'], ['how-it-works-1', 2, 'How it works']]);
  });
  it('has links to what the help has, to the web, and to nothing else', () => {
    expect(blocksOf('[a](other.md#x) [b](#deeper) [c](../concepts/README.md) [d](https://example.com/) [e](../../Makefile) [f](javascript:alert(1)) [g](../README.md)')).toEqual([{ kind: 'text', text: [
      { to: '/help/guides/other#x', text: ['a'] }, ' ', { to: '/help/guides/move#deeper', text: ['b'] }, ' ', { to: '/help/concepts', text: ['c'] }, ' ', { to: 'https://example.com/', text: ['d'] }, ' e f ', { to: '/help', text: ['g'] }] }]);
  });
  it('keeps lists, tables, code and quotes, and says where a picture was', () => {
    expect(blocksOf('3. one\n4. two\n\n   more\n')).toMatchObject([{ kind: 'list', from: 3, items: [[{ kind: 'text', text: ['one'] }], [{ text: ['two'] }, { text: ['more'] }]] }]);
    expect(blocksOf('| A | B |\n|---|---|\n| `x \\| y` | **b** |\n')).toEqual([{ kind: 'table', rows: [[['A'], ['B']], [[{ code: 'x | y' }], [{ bold: ['b'] }]]] }]);
    expect(blocksOf('```mermaid\ngraph\n```\n> said\n\n![A list](a.png)\n')).toEqual([{ kind: 'code', text: 'graph', language: 'mermaid' }, { kind: 'quote', blocks: [{ kind: 'text', text: ['said'] }] }, { kind: 'picture', text: 'A list' }]);
  });
  it('makes no HTML: tags are left out, entities are letters', () => {
    expect(blocksOf('a <b onclick="x()">bold</b> &lt;c&gt;\n\n<script>alert(1)</script>\n')).toEqual([{ kind: 'text', text: ['a bold <c>'] }]);
  });
  it('is shown whatever its address ends with', () => {
    expect([anchorIn(''), anchorIn('#how-it-works'), anchorIn('#caf%C3%A9'), anchorIn('#100%')]).toEqual(['', 'how-it-works', 'café', '100%']);
  });
  it('has the anchors of a Git host', () => {
    expect(anchorOf('What it does: `a_b`, and (more)')).toBe('what-it-does-a_b-and-more');
  });
});

const PAGES: Page[] = [
  read('# Move\nAbout moving.\n## Rollback\nPress the button.\n### Pruning\nObjects are deleted.\n'),
  read('# Other\nA rollback is undone by automated sync. Sync again.\n## Sync windows\nNothing.\n', 'guides/other.md'),
  read('# Concepts\nSynchronous things. The setting `--cors` and global.codefresh.url.\n', 'concepts/README.md'),
];
const index = indexOf(PAGES);
const found = (text: string) => search(index, text).map(({ address }) => address);

describe('the search', () => {
  it('wants all words, each at the begin of a word', () => {
    expect(found('rollback sync')).toEqual(['/help/guides/other']);
    expect(found('ollback')).toEqual([]);
    expect(found('roll')).toEqual(['/help/guides/move#rollback', '/help/guides/move#pruning', '/help/guides/other']);
    expect(found('  ')).toEqual([]);
  });
  it('counts the headings above a section, and its own heading most', () => {
    expect(found('sync')).toEqual(['/help/guides/other#sync-windows', '/help/guides/other', '/help/concepts']);
    expect(search(index, 'move deleted')).toMatchObject([{ title: 'Pruning', trail: ['Move', 'Rollback'], snippet: 'Objects are deleted.' }]);
  });
  it('finds names with signs in them', () => {
    expect(found('--cors')).toEqual(['/help/concepts']);
    expect(found('codefresh')).toEqual(['/help/concepts']);
    expect(wordsOf('"--cors", X-Request-Id! ?')).toEqual(['--cors', 'x-request-id']);
  });
  it('names the words that no page has', () => {
    expect(unknownWords(index, 'sync zebra')).toEqual(['zebra']);
  });
  it('marks the words in a text', () => {
    expect(marked('Sync and resync, syncing', ['sync', 'and'])).toEqual(['', 'Sync', ' ', 'and', ' resync, ', 'sync', 'ing']);
  });
});

describe('pages', () => {
  it('are found by the end of their path when they have moved', () => {
    expect(pageAt(PAGES, 'guides/other')?.title).toBe('Other');
    expect(pageAt(PAGES, 'other')?.title).toBe('Other');
    expect(pageAt(PAGES, 'elsewhere/move')?.title).toBe('Move');
    expect(pageAt(PAGES, 'her')).toBeUndefined();
  });
  it('are grouped by folder, with the page of the folder', () => {
    const tree = [...PAGES, read('# Why\n', 'concepts/why.md'), read('# Alone\n', 'alone.md')];
    expect(groupsOf(tree).map(({ title, pages }) => [title, pages.map((page) => page.title)])).toEqual([['Guides', ['Move', 'Other']], ['Concepts', ['Concepts', 'Why']], ['', ['Alone']]]);
  });
});

describe('the documents of the project', () => {
  const pages = readDocuments() as Page[];
  it('all have a title, and addresses that are different', () => {
    expect(pages.length).toBeGreaterThan(20);
    expect(pages.filter(({ title, path }) => title === '' || title === path && path.includes('/'))).toEqual([]);
    const addresses = indexOf(pages).map(({ address }) => address);
    expect(new Set(addresses).size).toBe(addresses.length);
  });
  it('leave out what is for contributors', () => {
    expect(pages.filter(({ path }) => /(^|\/)(adr|design|contributing|benchmarks|architecture)(\/|$)/.test(path))).toEqual([]);
  });
  it('stay small', () => {
    expect(JSON.stringify(pages).length).toBeLessThan(800_000);
  });
  it('have no text twice or lost: each word of a page is found', () => {
    const text = plainText(pages.flatMap(({ sections }) => sections.flatMap(({ blocks }) => blocks)));
    expect(text).not.toMatch(/\]\(|<\/?[a-z]+>\*\*|\|---/);
  });
  it('have an answer to each question that the console links to', () => {
    const folder = new URL('../../../apps/control-plane/console/src/', import.meta.url);
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file)).map((file) => readFileSync(new URL(file, folder), 'utf8')).join('\n');
    const questions = [...sources.matchAll(/\bhelp(?:=|: |Address\()["']([^"']+)["']/g)].map(([, words]) => words!);
    expect(questions.length).toBeGreaterThan(5);
    const all = indexOf(pages);
    expect(questions.filter((words) => search(all, words).length === 0)).toEqual([]);
  });
});
