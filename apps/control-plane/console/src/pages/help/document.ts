// The project's documents as documents.mjs makes them from docs/. Pure.

export type Inline = string | { code: string } | { bold: Inline[] } | { italic: Inline[] } | { to: string; text: Inline[] };
export type Block =
  | { kind: 'text'; text: Inline[] }
  | { kind: 'list'; from?: number; items: Block[][] } // `from`: the number of the first item
  | { kind: 'table'; rows: Inline[][][] } // the first row is the head
  | { kind: 'code'; text: string; language?: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'picture'; text: string }; // what stands for a picture that is not here

export interface Section {
  at: string; // anchor; '' for the begin of the page
  depth: number;
  title: string;
  blocks: Block[];
}
export interface Page {
  path: string; // "get-started/install"
  title: string;
  sections: Section[];
}

/** Returns the page of a path, or the only one whose path ends like it: a page that has moved into a folder is still found. */
export function pageAt(pages: readonly Page[], path: string): Page | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1);
  const alike = pages.filter((page) => page.path === last || page.path.endsWith(`/${last}`));
  return pages.find((page) => page.path === path) ?? (alike.length === 1 ? alike[0] : undefined);
}

/** Returns the anchor that an address ends with; one that is written wrongly is one that no section has. */
export function anchorOf(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

/** "get-started" as "Get started". */
const spoken = (name: string) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('-', ' ');

/** Returns the pages by the folder at the top, in the order of the first page of each; '' are those without one. */
export function groupsOf(pages: readonly Page[]): { title: string; pages: Page[] }[] {
  const groups = new Map<string, Page[]>();
  for (const page of pages) {
    // The page of a folder itself belongs into it.
    const isFolder = pages.some(({ path }) => path.startsWith(`${page.path}/`));
    const folder = isFolder || page.path.includes('/') ? page.path.split('/')[0]! : '';
    groups.set(folder, [...(groups.get(folder) ?? []), page]);
  }
  return [...groups].map(([folder, all]) => ({ title: spoken(folder), pages: all }));
}

export function textOf(inlines: readonly Inline[]): string {
  return inlines.map((part) => (typeof part === 'string' ? part : 'code' in part ? part.code : textOf('bold' in part ? part.bold : 'italic' in part ? part.italic : part.text))).join('');
}

/** The text of blocks, for the search. */
export function plainText(blocks: readonly Block[]): string {
  return blocks.map((block) => {
    if (block.kind === 'text') return textOf(block.text);
    if (block.kind === 'list') return block.items.map(plainText).join('\n');
    if (block.kind === 'table') return block.rows.map((row) => row.map(textOf).join(' ')).join('\n');
    return block.kind === 'quote' ? plainText(block.blocks) : block.text;
  }).join('\n');
}
