// Reduces a PNG of a browser to 256 colours, so that pictures of the documentation stay small.
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

/** Returns the picture with its 256 most frequent colours; each other colour becomes the nearest of them. */
export function reduced(png) {
  const chunks = chunksOf(png);
  const head = chunks.find(({ type }) => type === 'IHDR').data;
  const [width, height, bits, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8], head[9]];
  const depth = { 2: 3, 6: 4 }[kind];
  if (bits !== 8 || !depth || head[12] !== 0) throw new Error('only pictures of 8 bits, RGB or RGBA, not interlaced');
  const pixels = pixelsOf(inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data))), width, height, depth);
  const counts = new Map();
  const colourAt = (index) => (pixels[index * depth] << 16) | (pixels[index * depth + 1] << 8) | pixels[index * depth + 2];
  for (let index = 0; index < width * height; ++index) counts.set(colourAt(index), (counts.get(colourAt(index)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
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
  const lines = Buffer.alloc((width + 1) * height);
  for (let index = 0; index < width * height; ++index) {
    const colour = colourAt(index);
    let place = places.get(colour);
    if (place === undefined) places.set(colour, (place = nearest(colour)));
    lines[Math.floor(index / width) * (width + 1) + 1 + (index % width)] = place;
  }
  const header = Buffer.from(head);
  header[9] = 3; // a palette
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('PLTE', Buffer.from(palette.flatMap(parts))), chunk('IDAT', deflateSync(lines, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
