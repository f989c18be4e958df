// Makes documents for the schema beside this file, valid and invalid ones, and writes each with the
// answer of the reference implementation, one JSON object a line.
// usage: node reference.mjs OUTPUT COUNT SEED
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';

// The modules lie in the folder that the test names, away from the sources.
const require = createRequire(join(process.env.GRAPHQL_JS_MODULES ?? process.cwd(), 'x.js'));
const g = require('graphql');

const here = dirname(fileURLToPath(import.meta.url));
const [output, count, seed] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const schema = g.buildSchema(readFileSync(join(here, 'everything.graphql'), 'utf8'));
const data = JSON.parse(readFileSync(join(here, 'everything.json'), 'utf8'));

// --- Answers ---

const failing = () => {
  throw new Error('it failed');
};
for (const name of ['fails', 'failsHard']) schema.getType('Deep').getFields()[name].resolve = failing;
const root = {
  user: data.ann,
  users: [data.ann, data.ann.bestFriend],
  node: data.ann,
  resource: data.repo,
  named: [data.ann, data.repo],
  items: [data.ann, data.repo, data.tag, null],
  echo: (given) => JSON.stringify(given),
  need: (given) => JSON.stringify(given),
  deep: data.deep,
  deepHard: data.deep.deepHard,
  version: '1.2.3',
  rename: (given) => ({ ...data.ann, name: given.name }),
  count: 3,
  fail: failing,
};

function answer(request) {
  let document;
  try {
    document = g.parse(request.query);
  } catch (error) {
    return { errors: [error] };
  }
  const errors = g.validate(schema, document);
  if (errors.length > 0) return { errors };
  const { operationName, variables: variableValues } = request;
  return g.executeSync({ schema, document, rootValue: root, variableValues, operationName });
}

// --- Documents ---

let aliases = 0;
let state = seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const chance = (p) => random() < p;
const pick = (list) => list[below(list.length)];

const inputTypes = Object.values(schema.getTypeMap()).filter(
  (type) => g.isInputType(type) && !type.name.startsWith('__'),
);

// A literal for the type; `scope` holds the variables of the operation, or is null for constants.
function literal(type, scope, depth) {
  if (scope && chance(0.12)) return variable(type, scope);
  if (g.isNonNullType(type)) return literal(type.ofType, scope && { ...scope, nonNull: true }, depth);
  if (chance(0.05) && !(scope && scope.nonNull)) return 'null';
  if (chance(0.008)) return wrong();
  const inner = scope && { ...scope, nonNull: false };
  if (g.isListType(type)) {
    if (chance(0.15)) return literal(type.ofType, inner, depth + 1);
    return `[${Array.from({ length: below(3) }, () => literal(type.ofType, inner, depth + 1)).join(', ')}]`;
  }
  if (g.isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).filter(
      (field) => g.isRequiredInputField(field) || (depth < 3 && chance(0.3)),
    );
    const texts = fields.map((field) => `${field.name}: ${literal(field.type, inner, depth + 1)}`);
    if (chance(0.03)) texts.push('lable: 1');
    if (chance(0.02) && texts.length > 0) texts.push(pick(texts));
    return `{${texts.join(', ')}}`;
  }
  if (g.isEnumType(type)) return chance(0.05) ? pick(['REDD', '"RED"', 'green']) : pick(type.getValues()).name;
  switch (type.name) {
    case 'Int':
      return pick(['0', '1', '-5', '2147483647', chance(0.2) ? '2147483648' : '12', '7']);
    case 'Float':
      return pick(['0.5', '1e3', '-2.25', '3', '1.0E-5', '123456789012345678901']);
    case 'Boolean':
      return pick(['true', 'false']);
    case 'ID':
      return pick(['"u1"', '12', '"x y"']);
    case 'JSON':
      return pick(['{a: 1, b: [true, "x", null, RED], c: {d: 1.5}}', '"text"', '12', '[1, [2]]', 'true']);
    default:
      return pick(['"text"', '""', '"\\u00e9 \\"quoted\\" \\n"', '"""block\n  "of" text\n\n    more\n"""', '"ü€😀"']);
  }
}
const wrong = () => pick(['12', '1.5', '"text"', 'true', 'RED', '{x: 1}', '[1]', '"""block"""', '{}', '99999999999']);

function typeText(type) {
  return type.toString();
}
function variable(type, scope) {
  const { operation } = scope;
  const known = operation.variables.filter((one) => one.type === typeText(type));
  if (known.length > 0 && chance(0.6)) return `$${pick(known).name}`;
  let declared = type;
  if (chance(0.03)) declared = pick(inputTypes);
  if (g.isNullableType(declared) && chance(0.3)) declared = new g.GraphQLNonNull(declared);
  else if (g.isNonNullType(declared) && chance(0.03)) declared = declared.ofType;
  const name = pick(['a', 'b', 'v', 'input', 'id']) + operation.variables.length;
  const one = { name, type: typeText(declared), declared, constant: undefined };
  if (chance(0.3)) one.constant = literal(declared, null, 1);
  operation.variables.push(one);
  if (!(chance(0.15) && (one.constant || g.isNullableType(declared)))) {
    operation.values[name] = json(declared, 0);
  }
  return `$${name}`;
}

// A JSON value for a variable of the type.
function json(type, depth) {
  if (chance(0.04)) return pick([null, 12, 1.5, 'text', true, 'RED', { x: 1 }, [1], {}, 3e10, 1e30, [[{ y: [1, [2, [3]]] }]]]);
  if (g.isNonNullType(type)) return json(type.ofType, depth);
  if (chance(0.04)) return null;
  if (g.isListType(type)) {
    if (chance(0.15)) return json(type.ofType, depth + 1);
    return Array.from({ length: below(4) }, () => json(type.ofType, depth + 1));
  }
  if (g.isInputObjectType(type)) {
    const value = {};
    for (const field of Object.values(type.getFields())) {
      if (g.isRequiredInputField(field) ? chance(0.97) : depth < 3 && chance(0.3)) {
        value[field.name] = json(field.type, depth + 1);
      }
    }
    if (chance(0.05)) value[pick(['lable', 'nam', 'colour'])] = 1;
    return value;
  }
  if (g.isEnumType(type)) return chance(0.07) ? pick(['REDD', 'green', 'PINK']) : pick(type.getValues()).name;
  switch (type.name) {
    case 'Int':
      return pick([0, 1, -5, 2147483647, 12]);
    case 'Float':
      return pick([0.5, 1000, -2.25, 3, 1e-7, 1.5e300]);
    case 'Boolean':
      return chance(0.5);
    case 'ID':
      return pick(['u1', 12, 'x y']);
    case 'JSON':
      return pick([{ a: 1, b: [true, 'x', null], c: { d: 1.5 } }, 'text', 12, [1, [2]]]);
    default:
      return pick(['text', '', 'é "quoted" \n', '😀\u2028']);
  }
}

function args(definitions, scope) {
  const given = definitions.filter((arg) => (g.isRequiredArgument(arg) ? chance(0.97) : chance(0.35)));
  const texts = given.map((arg) => `${arg.name}: ${literal(arg.type, scope, 0)}`);
  if (chance(0.004)) texts.push('fist: 1');
  if (chance(0.004) && texts.length > 0) texts.push(pick(texts));
  return texts.length > 0 ? `(${texts.join(pick([', ', ' ', ',\n']))})` : '';
}

function directives(scope, place) {
  let text = '';
  if (place !== 'definition' && chance(0.06)) text += ` @${pick(['skip', 'include'])}(if: ${literal(new g.GraphQLNonNull(g.GraphQLBoolean), scope, 0)})`;
  if (chance(0.04)) text += ` @tag${args(schema.getDirective('tag').args, scope)}`;
  if (chance(0.01) && place === 'field') text += ` @once${args(schema.getDirective('once').args, scope)}`;
  if (chance(0.003)) text += pick([' @skip', ' @unknown(id: 1)', ' @deprecated', ' @include(iff: true)', ' @once(reason: "a") @once(reason: "b")']);
  return text;
}

function selections(type, scope, depth) {
  const texts = [];
  const fields = g.isUnionType(type) ? [] : Object.values(type.getFields());
  const wanted = 1 + below(depth > 3 ? 2 : 4);
  for (let i = 0; i < wanted; i++) {
    const kind = random();
    if (kind < 0.08) {
      texts.push(chance(0.3) ? 'kind: __typename' : '__typename');
    } else if (kind < 0.2 && depth < 5) {
      const candidates = Object.values(schema.getTypeMap()).filter(
        (other) => g.isCompositeType(other) && !other.name.startsWith('__') &&
          (chance(0.004) || g.doTypesOverlap(schema, type, other)),
      );
      const other = pick(candidates);
      if (other && chance(0.6)) {
        const condition = other === type && chance(0.5) ? '' : `on ${other.name} `;
        texts.push(`... ${condition}${directives(scope)} ${selections(other, scope, depth + 1)}`);
      } else if (other) {
        texts.push(`...${fragment(other, scope, depth)}${directives(scope)}`);
      }
    } else if (fields.length > 0) {
      const field = pick(fields);
      const inner = g.getNamedType(field.type);
      if (g.isCompositeType(inner) && depth > 5) continue;
      const alias = chance(0.04) ? `${pick(['a', 'b', 'name', 'id', 'ok'])}: ` : field.args.length > 0 || chance(0.1) ? `f${aliases++}: ` : '';
      let text = `${alias}${field.name}${args(field.args, scope)}${directives(scope, 'field')}`;
      if (g.isCompositeType(inner) ? chance(0.99) : chance(0.005)) {
        text += ` ${g.isCompositeType(inner) ? selections(inner, scope, depth + 1) : '{ x }'}`;
      }
      texts.push(text);
    }
  }
  if (texts.length === 0) texts.push('__typename');
  if (chance(0.004)) texts.push(pick(['nam', 'idd', 'sizee', 'age', 'label', 'size']));
  return `{ ${texts.join(pick([' ', '\n  ', ', ']))} }`;
}

function fragment(type, scope, depth) {
  const { fragments } = scope;
  const known = fragments.filter((one) => one.type === type);
  if (known.length > 0 && chance(0.5)) return pick(known).name;
  if (chance(0.02)) return 'missing';
  const one = { name: `F${fragments.length}`, type, text: '' };
  fragments.push(one);
  const body = selections(type, { ...scope, operation: chance(0.7) ? scope.operation : { variables: [], values: {} } }, depth + 1);
  one.text = `fragment ${one.name} on ${type.name}${directives(scope, 'definition')} ${body}`;
  return one.name;
}

function document() {
  const fragments = [];
  const values = {};
  const operations = [];
  const total = chance(0.08) ? 2 : 1;
  for (let i = 0; i < total; i++) {
    const kind = chance(0.85) ? 'query' : chance(0.7) ? 'mutation' : 'subscription';
    const operation = { variables: [], values };
    const body = selections(schema.getRootType(kind), { operation, fragments, nonNull: false }, 0);
    if (chance(0.03)) operation.variables.push({ name: 'unused', type: pick(['Int', 'User', '[Strin]', 'Filter!']) });
    const name = chance(0.6) || total > 1 ? pick(['One', 'Two', 'Three']) : '';
    let text = body;
    if (kind !== 'query' || name || operation.variables.length > 0 || chance(0.3)) {
      const variables = operation.variables.map(
        (one) => `$${one.name}: ${one.type}${one.constant ? ` = ${one.constant}` : ''}${chance(0.03) ? ' @tag' : ''}`,
      );
      text = `${kind} ${name}${variables.length > 0 ? `(${variables.join(', ')})` : ''}${directives({ operation, fragments }, 'definition')} ${body}`;
    }
    operations.push({ name, text });
  }
  const texts = [...operations.map((one) => one.text), ...fragments.map((one) => one.text)];
  if (chance(0.02)) texts.push(fragments.length > 0 ? pick(fragments).text : 'fragment Unused on User { id }');
  if (chance(0.01)) texts.push(pick(['type Odd { a: Int }', 'extend type Query { b: Int }', 'scalar S']));
  if (chance(0.3)) texts.reverse();
  const request = { query: texts.join(pick(['\n', ' ', '\n\n# a comment\r\n'])) };
  if (chance(0.9) || Object.keys(values).length > 0) request.variables = values;
  if (operations.length > 1 ? chance(0.9) : chance(0.1)) request.operationName = pick(operations).name || 'One';
  return request;
}

// Breaks a document: its text, token by token, or a few characters.
function mutated(text) {
  const tokens = text.match(/"""[^]*?"""|"(?:\\.|[^"\\])*"|\.\.\.|[\w.+-]+|\s+|[^\s\w]/g) ?? [text];
  const solid = tokens.map((token, i) => (token.trim() ? i : -1)).filter((i) => i >= 0);
  const at = pick(solid);
  switch (below(9)) {
    case 0:
      tokens.splice(at, 1);
      break;
    case 1:
      tokens.splice(at, 0, tokens[at] + ' ');
      break;
    case 2:
      tokens[at] = tokens[pick(solid)];
      break;
    case 3:
      tokens[at] = pick(['{', '}', '(', ')', '$', '!', ':', '...', 'on', 'null', '@', '[', ']', '=', '|', '&', '#', '"', "'", '?', '-', '0', '1.', '01', '"""', 'é', '😀', '.', '\u0007', '%', '"\\x"', '"\\u12G4"', '"\\u{110000}"', '"\\uD83D\\uDE00"', '"\\uD83D"', '1e', '-a', '0x1', '1.5e+', '"a\nb"', 'extend', 'fragment on', 'query', 'type']);
      break;
    case 4: {
      const names = solid.filter((i) => /^[A-Za-z_]\w+$/.test(tokens[i]));
      if (names.length > 0) {
        const i = pick(names);
        const word = tokens[i];
        const place = below(word.length);
        tokens[i] = pick([word.slice(0, place) + word.slice(place + 1), word.slice(0, place) + 'x' + word.slice(place), word.toUpperCase(), word + 's']) || 'x';
      }
      break;
    }
    case 5: {
      const names = solid.filter((i) => /^[A-Za-z_]\w*$/.test(tokens[i]));
      if (names.length > 1) tokens[pick(names)] = tokens[pick(names)];
      break;
    }
    case 6:
      return text.slice(0, below(text.length));
    case 7:
      tokens.splice(at, 0, pick([' __schema { types { name } }', ' __type(name: "User") { name }', ' ...F0', ' ...F1', ' ... on Node { id }', ' id', ' name: id', ' x: name', ' $v0', ' ! ', ' = 3']));
      break;
    default: {
      const j = pick(solid);
      [tokens[at], tokens[j]] = [tokens[j], tokens[at]];
    }
  }
  return tokens.join('');
}

const introspection = [
  g.getIntrospectionQuery({ descriptions: false, directiveIsRepeatable: true, schemaDescription: true, specifiedByUrl: true, inputValueDeprecation: true }),
  '{ __schema { description queryType { name } mutationType { name } subscriptionType { name } } }',
  '{ __type(name: "User") { kind name description fields(includeDeprecated: true) { name description isDeprecated deprecationReason args { name type { name ofType { name } } defaultValue } type { kind name ofType { kind name ofType { name } } } } interfaces { name } possibleTypes { name } } }',
  '{ __type(name: "Resource") { description fields { name } interfaces { name } possibleTypes { name } } }',
  '{ __type(name: "Item") { kind fields { name } possibleTypes { name } } }',
  '{ __type(name: "Color") { enumValues { name } all: enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } } }',
  '{ __type(name: "Filter") { inputFields { name defaultValue type { name kind ofType { name } } isDeprecated } } }',
  '{ __type(name: "Nope") { name } none: __type(name: "JSON") { specifiedByURL } }',
  '{ __type { name } }',
  '{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }',
  '{ user(id: 1) { __type(name: "User") { name } __schema { types { name } } } }',
];

const lines = [];
const seen = new Set();
function add(request) {
  const result = JSON.parse(JSON.stringify(answer(request)));
  const key = JSON.stringify(request);
  if (seen.has(key)) return;
  seen.add(key);
  lines.push(JSON.stringify({ ...request, answer: result }));
}
for (const query of introspection) add({ query });
while (lines.length < count) {
  const request = document();
  if (chance(0.35)) request.query = mutated(request.query);
  // A subscription does not run here, and the rule for subscriptions throws without variables.
  if (/subscription/.test(request.query)) {
    let document;
    try {
      document = g.parse(request.query);
      if (g.validate(schema, document).length === 0) continue;
    } catch (error) {
      if (document) continue;
    }
  }
  add(request);
}
writeFileSync(output, lines.join('\n') + '\n');
