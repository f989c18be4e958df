// JSON as a tree that keeps the text of each scalar, since numbers of manifests may be larger than those of JavaScript.

/** A scalar as its JSON text, a list, or a map in the order of the text. */
export type Tree = string | Tree[] | Map<string, Tree>;

const DEEPEST = 200;
const BLANK = /[ \t\r\n]*/y;
const SCALAR = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;

/** Reads a JSON text. Throws SyntaxError when it is none. */
export function readTree(text: string): Tree {
  let at = 0;
  const blank = () => {
    BLANK.lastIndex = at;
    BLANK.exec(text);
    at = BLANK.lastIndex;
  };
  const wrong = (): never => { throw new SyntaxError(`This is no JSON at ${at}.`); };
  const scalar = (): string => {
    SCALAR.lastIndex = at;
    const found = SCALAR.exec(text);
    if (!found) return wrong();
    at = SCALAR.lastIndex;
    return found[0];
  };
  const value = (depth: number): Tree => {
    if (depth > DEEPEST) return wrong();
    blank();
    const first = text[at];
    if (first !== '{' && first !== '[') return scalar();
    const close = first === '{' ? '}' : ']';
    const list: Tree[] = [];
    const map = new Map<string, Tree>();
    ++at;
    for (blank(); text[at] !== close; blank()) {
      if (list.length + map.size > 0) {
        if (text[at] !== ',') wrong();
        ++at;
        blank();
      }
      if (first === '[') {
        list.push(value(depth + 1));
        continue;
      }
      if (text[at] !== '"') wrong();
      const key = JSON.parse(scalar()) as string;
      blank();
      if (text[at] !== ':') wrong();
      ++at;
      map.set(key, value(depth + 1));
    }
    ++at;
    return first === '{' ? map : list;
  };
  const root = value(0);
  blank();
  if (at < text.length) wrong();
  return root;
}

const PLAIN = /^[A-Za-z_/.][A-Za-z0-9_/. @+=-]*$/;
const WORD = /^(?:true|false|null|yes|no|on|off|y|n|~|\.inf|\.nan)$/i;
const isPlain = (text: string): boolean => PLAIN.test(text) && !WORD.test(text) && !text.endsWith(' ');

function keyText(key: string): string {
  return isPlain(key) ? key : JSON.stringify(key);
}

// First the keys that say what an object is, then the others by name: both sides have one order.
const FIRST = ['apiVersion', 'kind', 'metadata', 'spec', 'name'];
function inOrder(map: Map<string, Tree>): [string, Tree][] {
  const rank = (key: string) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  return [...map].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** Where a line is: keys, and the numbers of items. */
export type Path = readonly (string | number)[];

/** Writes a tree as YAML, a line for each scalar. Texts of several lines become blocks. `places` gets the path of each line. */
export function yamlLines(tree: Tree, places?: Path[]): string[] {
  const lines: string[] = [];
  const put = (line: string, path: Path) => {
    lines.push(line);
    places?.push(path);
  };
  const below = (path: Path, step: string | number): Path => (places ? [...path, step] : path);
  const scalar = (head: string, json: string, indent: string, path: Path) => {
    if (json[0] !== '"') {
      put(`${head}${json}`, path);
      return;
    }
    const text = JSON.parse(json) as string;
    if (text.includes('\n') && !/[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\ufeff]/.test(text) && !/^\s/.test(text)) {
      const end = text.endsWith('\n\n') ? '+' : text.endsWith('\n') ? '' : '-';
      put(`${head}|${end}`, path);
      for (const line of text.replace(/\n$/, '').split('\n')) put(line === '' ? '' : `${indent}${line}`, path);
      return;
    }
    put(`${head}${isPlain(text) ? text : JSON.stringify(text)}`, path);
  };
  // `head` is what stands before the value in its line, `indent` that of the lines of its parts.
  const write = (head: string, value: Tree, indent: string, path: Path) => {
    if (typeof value === 'string') return scalar(head === '' ? '' : `${head} `, value, indent, path);
    const isMap = value instanceof Map;
    if ((isMap ? value.size : value.length) === 0) {
      put(`${head}${head && ' '}${isMap ? '{}' : '[]'}`, path);
      return undefined;
    }
    if (isMap) {
      const isItem = head.endsWith('-');
      let before = isItem ? `${head} ` : indent;
      if (head !== '' && !isItem) put(head, path);
      for (const [key, part] of inOrder(value)) {
        write(`${before}${keyText(key)}:`, part, `${indent}  `, below(path, key));
        before = indent;
      }
      return undefined;
    }
    if (head !== '') put(head, path);
    // The items of a key stand below it, as kubectl writes them.
    const place = head.endsWith(':') ? indent.slice(2) : indent;
    value.forEach((part, at) => write(`${place}-`, part, `${place}  `, below(path, at)));
    return undefined;
  };
  write('', tree, '', []);
  return lines;
}
