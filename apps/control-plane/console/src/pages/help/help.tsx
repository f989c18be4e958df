// The project's documents: what there is, what a search finds, and each page.
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { addKeys } from '../../shell/keys';
import { here, navigate, rememberedScroll, setQuery } from '../../shell/router';
import { Icon } from '../../ui/icons';
import { Copy, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { anchorOf, groupsOf, pageAt, type Block, type Inline, type Page, type Section } from './document';
import { Finder } from './finder';
import { readDocuments } from './load';
import { sectionAddress } from './search';

function Inlines({ of }: { of: readonly Inline[] }) {
  return <>{of.map((part, key) => {
    if (typeof part === 'string') return part;
    if ('code' in part) return <code key={key}>{part.code}</code>;
    if ('bold' in part) return <strong key={key}><Inlines of={part.bold} /></strong>;
    if ('italic' in part) return <em key={key}><Inlines of={part.italic} /></em>;
    if (part.to.startsWith('/')) return <a key={key} href={part.to}><Inlines of={part.text} /></a>;
    return <a key={key} href={part.to} target="_blank" rel="noopener noreferrer"><Inlines of={part.text} /><Icon name="link" size={12} /></a>;
  })}</>;
}

/** What may be wider than the page scrolls by itself, by keys, too. */
function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="scroll" tabIndex={0} role="group" aria-label={label}>{children}</div>;
}

function Code({ text, language }: { text: string; language?: string }) {
  const isPicture = language === 'mermaid';
  return (
    <figure class="command">
      {isPicture && <figcaption class="mute small">A diagram, as the text that draws it (Mermaid)</figcaption>}
      <pre tabIndex={0} aria-label={isPicture ? 'Diagram as text' : 'Code'}>{text}</pre>
      <Copy text={text} />
    </figure>
  );
}

function Blocks({ of, title }: { of: readonly Block[]; title: string }) {
  return <>{of.map((block, key) => {
    if (block.kind === 'text') return <p key={key}><Inlines of={block.text} /></p>;
    if (block.kind === 'code') return <Code key={key} {...block} />;
    if (block.kind === 'quote') return <blockquote key={key}><Blocks of={block.blocks} title={title} /></blockquote>;
    if (block.kind === 'picture') return <p key={key} class="mute small">Picture in the documents: {block.text}</p>;
    if (block.kind === 'list') {
      const items = block.items.map((item, at) => <li key={at}>{item.length === 1 && item[0]!.kind === 'text' ? <Inlines of={item[0]!.text} /> : <Blocks of={item} title={title} />}</li>);
      return block.from === undefined ? <ul key={key}>{items}</ul> : <ol key={key} start={block.from}>{items}</ol>;
    }
    const [head = [], ...rows] = block.rows;
    return (
      <Scroll key={key} label={`Table of ${title}`}>
        <table>
          <thead><tr>{head.map((cell, at) => (cell.length > 0 ? <th key={at} scope="col"><Inlines of={cell} /></th> : <td key={at} />))}</tr></thead>
          <tbody>{rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}><Inlines of={cell} /></td>)}</tr>)}</tbody>
        </table>
      </Scroll>
    );
  })}</>;
}

function Part({ page, section }: { page: Page; section: Section }) {
  const { at, depth, title } = section;
  const Heading = `h${Math.min(depth, 4)}` as 'h2';
  return (
    <section data-at={at}>
      {at && <Heading tabIndex={-1}>{title} <a class="anchor" href={sectionAddress(page.path, at)} aria-label={`Address of ${title}`}>#</a></Heading>}
      <Blocks of={section.blocks} title={title || page.title} />
    </section>
  );
}

function Document({ page }: { page: Page }) {
  const article = useRef<HTMLElement>(null);
  // A link within the page changes the address alone.
  const place = here.value;
  useLayoutEffect(() => {
    const at = anchorOf(location.hash);
    const part = at && [...article.current!.querySelectorAll<HTMLElement>('section')].find((one) => one.dataset.at === at);
    const scroller = article.current!.closest('[data-scroller]')!;
    if (!part) scroller.scrollTop = rememberedScroll();
    else {
      part.scrollIntoView();
      part.querySelector<HTMLElement>('[tabindex="-1"]')?.focus({ preventScroll: true });
    }
  }, [page, place]);
  const parts = page.sections.filter(({ at, depth }) => at && depth === 2);
  return (
    <article ref={article} class="document">
      {parts.length > 2 && (
        <details class="contents" key={page.path}>
          <summary><Icon name="down" size={12} />On this page</summary>
          <ul>{parts.map(({ at, title }) => <li key={at}><a href={sectionAddress(page.path, at)}>{title}</a></li>)}</ul>
        </details>
      )}
      {page.sections.map((section) => <Part key={section.at} page={page} section={section} />)}
    </article>
  );
}

const LARGE = 15; // pages of a group that take the whole width

function Contents({ pages }: { pages: readonly Page[] }) {
  const groups = groupsOf(pages);
  return (
    <div class="contents-page">
      {groups.map((group) => (
        <section key={group.title} class={group.pages.length > LARGE ? 'large' : undefined}>
          <h2>{group.title || (groups.length > 1 ? 'More' : 'Pages')}</h2>
          <ul>{group.pages.map((page) => <li key={page.path}><a href={sectionAddress(page.path, '')}>{page.title}</a></li>)}</ul>
        </section>
      ))}
      <p class="mute small">The documents of this version are in the program; nothing is loaded from elsewhere. Decisions, design and benchmarks are in the repository alone.</p>
    </div>
  );
}

export function HelpPage({ parameters }: { parameters: Record<string, string> }) {
  const path = parameters.page ?? '';
  const text = here.value.query.get('q') ?? '';
  const { value: pages, failure, again } = useReading('documents', 'read the documents', readDocuments);
  const page = pages && path ? pageAt(pages, path) : undefined;
  useEffect(() => {
    if (page && page.path !== path) navigate(`${sectionAddress(page.path, '')}${location.search}${location.hash}`, { replace: true });
    if (page) document.title = `${page.title} · GitOps console`;
  }, [page]);
  useLayoutEffect(() => addKeys('Help', [{ keys: '/', text: 'Search the documents', run: () => document.querySelector<HTMLElement>('[data-finder]')?.focus() }]), []);
  return (
    <div class="page" data-scroller>
      <header class="title">
        {path && <p class="crumbs"><a href="/help">Help</a>{path.split('/').slice(0, -1).map((part) => <span key={part}>{part}</span>)}</p>}
        <h1>{page?.title ?? 'Help'}</h1>
      </header>
      <Finder text={text} set={(q) => setQuery({ q })} open={() => {}} />
      {failure && <Failed failure={failure} retry={again} />}
      {!pages && !failure && <Loading what="the documents" />}
      {pages && path && !page && <p class="notice"><span>There is no page <code>{path}</code>. It may have another name in this version: search for it, or choose one.</span></p>}
      {pages && !text && (page ? <Document key={page.path} page={page} /> : <Contents pages={pages} />)}
    </div>
  );
}
