// Packs a folder of files into a program: assets.S with their bytes, mostly compressed, and assets.cpp with the table
// of them, console_assets() of http/console_assets.hpp.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const MEDIA_TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

function files(folder) {
  return readdirSync(folder).sort().flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

export function pack(dist, out) {
  const packed = join(out, 'packed');
  rmSync(packed, { recursive: true, force: true });
  mkdirSync(packed, { recursive: true });
  const code = ['.section .rodata,"a",%progbits'];
  const labels = [];
  const rows = [];
  files(dist).forEach((file, number) => {
    const mediaType = MEDIA_TYPES[extname(file)];
    if (!mediaType) throw new Error(`pack.mjs knows no media type for ${file}`);
    const raw = readFileSync(file);
    const forms = {
      raw,
      gzip: gzipSync(raw, { level: 9 }),
      brotli: brotliCompressSync(raw, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
    };
    const views = Object.entries(forms).map(([form, bytes]) => {
      // A compressed form that saves nothing is left out, and the raw one where there is a gzip form to inflate.
      const isNeeded = form === 'raw' ? forms.gzip.length >= raw.length : bytes.length < raw.length;
      if (!isNeeded) return `.${form} = {}`;
      const label = `gitops_console_${number}_${form}`;
      writeFileSync(join(packed, label), bytes);
      code.push('.balign 16', `.globl ${label}`, `${label}:`, `.incbin "packed/${label}"`);
      labels.push(`extern const char ${label}[];`);
      return `.${form} = {${label}, ${bytes.length}}`;
    });
    const hash = createHash('sha256').update(raw).digest('hex').slice(0, 16);
    const path = `/${relative(dist, file).split('\\').join('/')}`;
    rows.push(`{.path = "${path}", .media_type = "${mediaType}", ${views.join(', ')}, .hash = "${hash}"},`);
  });
  code.push('.section .note.GNU-stack,"",%progbits', '');
  writeFileSync(join(out, 'assets.S'), code.join('\n'));
  writeFileSync(join(out, 'assets.cpp'), `#include "control-plane/http/console_assets.hpp"

extern "C" {
${labels.join('\n')}
}

namespace gitops::control_plane_server {

std::span<const ConsoleAsset> console_assets() {
  static constexpr ConsoleAsset kAssets[] = {
${rows.join('\n')}
  };
  return kAssets;
}

}  // namespace gitops::control_plane_server
`);
}
