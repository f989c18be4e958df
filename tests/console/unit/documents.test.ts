import { readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';

import * as documents from '../../../apps/control-plane/console/src/data/documents';

const schema = buildSchema(readFileSync(new URL('../../../apps/control-plane/schema.graphql', import.meta.url), 'utf8'));

describe('documents', () => {
  it.each(Object.entries(documents))('%s fits the schema', (_name, text) => {
    expect(validate(schema, parse(text)).map((error) => error.message)).toEqual([]);
  });
});
