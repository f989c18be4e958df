// Loads the documents, which are a file of their own beside the scripts.
import address from 'virtual:documents';

import { request } from '../../data/request';
import type { Page } from './document';
import { indexOf, type Index } from './search';

let read: Promise<readonly Page[]> | null = null;

/** Returns all documents. They are loaded once; a load that fails is tried again with the next call. Throws RequestError. */
export function readDocuments(): Promise<readonly Page[]> {
  read ??= request<{ pages: Page[] }>('read the documents', address, { cache: 'default' }).then(({ pages }) => pages, (error: unknown) => {
    read = null;
    throw error;
  });
  return read;
}

let made: Promise<Index> | null = null;
/** Returns what the search looks through. It is made once. Throws RequestError. */
export function readIndex(): Promise<Index> {
  made ??= readDocuments().then(indexOf).catch((error: unknown) => {
    made = null;
    throw error;
  });
  return made;
}
