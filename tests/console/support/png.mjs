// Makes pictures of the documentation small: PNGs of a browser with 256 colours, and animated ones (APNG).
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function chunksOf(png) {
  const chunks = [];
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return chunks;
}
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, tail]);
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

// Pixels without the filters of PNG 1.2, section 6. `depth` is bytes for each pixel.
function pixelsOf(data, width, height, depth) {
  const line = width * depth;
  const out = Buffer.alloc(line * height);
  for (let y = 0; y < height; ++y) {
    const filter = data[y * (line + 1)];
    for (let x = 0; x < line; ++x) {
      const at = y * line + x;
      const left = x >= depth ? out[at - depth] : 0;
      const up = y > 0 ? out[at - line] : 0;
      const corner = x >= depth && y > 0 ? out[at - line - depth] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      out[at] = (data[y * (line + 1) + 1 + x] + guess) & 255;
    }
  }
  return out;
}

// A PNG of a browser as colours, 0xRRGGBB for each pixel.
function read(png) {
  const chunks = chunksOf(png);
  const head = chunks.find(({ type }) => type === 'IHDR').data;
  const [width, height, bits, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8], head[9]];
  const depth = { 2: 3, 6: 4 }[kind];
  if (bits !== 8 || !depth || head[12] !== 0) throw new Error('only pictures of 8 bits, RGB or RGBA, not interlaced');
  const pixels = pixelsOf(inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data))), width, height, depth);
  const colours = new Uint32Array(width * height);
  for (let index = 0; index < colours.length; ++index) {
    colours[index] = (pixels[index * depth] << 16) | (pixels[index * depth + 1] << 8) | pixels[index * depth + 2];
  }
  return { width, height, colours };
}

const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];

/** The 256 most frequent colours of pictures; `placeOf` gives each other colour the nearest of them. */
function paletteOf(pictures) {
  const counts = new Map();
  for (const { colours } of pictures) for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const nearest = (colour) => {
    const [r, g, b] = parts(colour);
    let [best, least] = [0, Infinity];
    palette.forEach((one, place) => {
      const [r2, g2, b2] = parts(one);
      const far = (r - r2) ** 2 + (g - g2) ** 2 + (b - b2) ** 2;
      if (far < least) [best, least] = [place, far];
    });
    return best;
  };
  const placeOf = (colour) => {
    let place = places.get(colour);
    if (place === undefined) places.set(colour, (place = nearest(colour)));
    return place;
  };
  return { placeOf, chunk: chunk('PLTE', Buffer.from(palette.flatMap(parts))) };
}

function header({ width, height }) {
  const data = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0]); // 8 bits, a palette
  data.writeUInt32BE(width, 0);
  data.writeUInt32BE(height, 4);
  return chunk('IHDR', data);
}

// The compressed lines of a part of a picture, by the places of its colours.
function linesOf({ width, colours }, { placeOf }, { x, y, w, h }) {
  const lines = Buffer.alloc((w + 1) * h);
  for (let row = 0; row < h; ++row) {
    for (let column = 0; column < w; ++column) lines[row * (w + 1) + 1 + column] = placeOf(colours[(y + row) * width + x + column]);
  }
  return deflateSync(lines, { level: 9 });
}

const whole = ({ width, height }) => ({ x: 0, y: 0, w: width, h: height });

/** Returns the picture with 256 colours. */
export function reduced(png) {
  const picture = read(png);
  const palette = paletteOf([picture]);
  return Buffer.concat([SIGNATURE, header(picture), palette.chunk, chunk('IDAT', linesOf(picture, palette, whole(picture))), chunk('IEND', Buffer.alloc(0))]);
}

// The smallest part that differs; null: the pictures are equal.
function difference(before, after) {
  let [left, right, top, bottom] = [after.width, -1, after.height, -1];
  for (let y = 0; y < after.height; ++y) {
    for (let x = 0; x < after.width; ++x) {
      if (before.colours[y * after.width + x] === after.colours[y * after.width + x]) continue;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
  }
  return right < 0 ? null : { x: left, y: top, w: right - left + 1, h: bottom - top + 1 };
}

// APNG's fcTL: the place of a frame and how long it is shown.
function control(number, { x, y, w, h }, milliseconds) {
  const data = Buffer.alloc(26);
  [number, w, h, x, y].forEach((value, index) => data.writeUInt32BE(value, index * 4));
  data.writeUInt16BE(Math.min(milliseconds, 65_535), 20);
  data.writeUInt16BE(1_000, 22);
  return chunk('fcTL', data);
}

/** Returns an animated picture with 256 colours that repeats. `frames`: { png, milliseconds }, all of one size. */
export function animated(frames) {
  const pictures = frames.map(({ png, milliseconds }) => ({ ...read(png), milliseconds }));
  const kept = [];
  for (const picture of pictures) {
    const part = kept.length ? difference(kept.at(-1).picture, picture) : whole(picture);
    if (part) kept.push({ picture, part, milliseconds: picture.milliseconds });
    else kept.at(-1).milliseconds += picture.milliseconds;
  }
  const palette = paletteOf(pictures);
  const count = Buffer.alloc(8);
  count.writeUInt32BE(kept.length, 0);
  const chunks = [SIGNATURE, header(pictures[0]), chunk('acTL', count), palette.chunk];
  let number = 0;
  kept.forEach(({ picture, part, milliseconds }, index) => {
    chunks.push(control(number++, part, milliseconds));
    const lines = linesOf(picture, palette, part);
    if (index === 0) {
      chunks.push(chunk('IDAT', lines));
    } else {
      const place = Buffer.alloc(4);
      place.writeUInt32BE(number++);
      chunks.push(chunk('fdAT', Buffer.concat([place, lines])));
    }
  });
  return Buffer.concat([...chunks, chunk('IEND', Buffer.alloc(0))]);
}
