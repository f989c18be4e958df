import { effect, signal } from '@preact/signals';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const kept = document.documentElement.dataset.theme as Theme;
export const theme = signal<Theme>(THEMES.includes(kept) ? kept : 'system');

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem('theme', theme.value);
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}
