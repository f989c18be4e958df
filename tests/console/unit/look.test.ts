import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('../../../apps/control-plane/console/src/style.css', import.meta.url), 'utf8');
const tokens = Object.fromEntries([...css.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name, { light, dark }])) as Record<string, { light: string; dark: string }>;

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((one, other) => other - one);
  return (high! + 0.05) / (low! + 0.05);
}

describe.each(['light', 'dark'] as const)('colours of the %s theme', (theme) => {
  const of = (name: string) => tokens[name]![theme];
  it('has texts with a contrast of 4.5', () => {
    for (const text of ['fg', 'mute', 'accent', 'run', 'ok', 'warn', 'bad']) {
      for (const ground of ['bg', 'raise', 'sel', 'add', 'del']) expect(contrast(of(text), of(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(of('on-accent'), of('accent'))).toBeGreaterThanOrEqual(4.5);
  });
  it('has borders of controls with a contrast of 3', () => {
    for (const ground of ['bg', 'raise', 'sel']) expect(contrast(of('edge'), of(ground)), ground).toBeGreaterThanOrEqual(3);
  });
});
