import { readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';

import * as documents from '../../../apps/control-plane/console/src/data/documents';
import * as runtimeDocuments from '../../../apps/control-plane/console/src/data/runtime_documents';

const schemaOf = (program: string) => buildSchema(readFileSync(new URL(`../../../apps/${program}/schema.graphql`, import.meta.url), 'utf8'));

describe.each([['control-plane', documents], ['app-proxy', runtimeDocuments]] as const)('documents for %s', (program, all) => {
  const schema = schemaOf(program);
  it.each(Object.entries(all))('%s fits the schema', (_name, text) => {
    expect(validate(schema, parse(text)).map((error) => error.message)).toEqual([]);
  });
});
