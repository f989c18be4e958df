// Icons are paths of 16 × 16 with a stroke of 1.5. Those marked with * are drawn after lucide (ISC).

const PATHS = {
  // States: one shape for each meaning.
  tick: 'M8 14.25a6.25 6.25 0 1 0 0-12.5 6.25 6.25 0 0 0 0 12.5M5.25 8.25l2 2 3.5-4',
  arc: 'M13.5 5A6.25 6.25 0 1 0 14.25 8',
  cross: 'M4 4l8 8M12 4l-8 8',
  bar: 'M3 8h10',
  pause: 'M5.75 3.5v9M10.25 3.5v9',
  question: 'M5.5 5.75a2.5 2.5 0 1 1 3.6 2.25c-.7.35-1.1.8-1.1 1.6M8 12.4v.1',
  arrows: 'M2.5 5.25h10.5l-2.5-2.5M13.5 10.75H3l2.5 2.5',
  cut: 'M6.5 9.5a2.5 2.5 0 0 1 0-3.5M3.75 11a2.6 2.6 0 0 1 0-3.75L5 6M12.25 5a2.6 2.6 0 0 1 0 3.75L11 10M2.5 2.5l11 11',
  // Navigation*
  applications: 'M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z',
  runtimes: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5v.01M5 11v.01',
  audit: 'M5.5 4.5h8M5.5 8h8M5.5 11.5h8M2.5 4.5v.01M2.5 8v.01M2.5 11.5v.01',
  access: 'M5.25 10.75a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8.25 7.75h6M12 7.75v2.5M5.25 7.75v.01',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.5 10.5l3 3',
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  theme: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12M8 2v12',
  user: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8M2.75 13.75c.5-2.5 2.6-3.75 5.25-3.75s4.75 1.25 5.25 3.75',
  copy: 'M5.75 5.75h7.5v7.5h-7.5zM10.25 5.5V2.75h-7.5v7.5H5.5',
  close: 'M4 4l8 8M12 4l-8 8',
  down: 'M4 6l4 4 4-4',
  up: 'M4 10l4-4 4 4',
  right: 'M6 4l4 4-4 4',
  left: 'M10 4L6 8l4 4',
  link: 'M9 3h4v4M13 3L7.5 8.5M11.5 9.5v3.75h-8.75v-8.75H6.5',
  plus: 'M8 3v10M3 8h10',
  warning: 'M8 2.5L14.5 13.5h-13zM8 6.5v3M8 11.5v.01',
  clock: 'M8 14.25a6.25 6.25 0 1 0 0-12.5 6.25 6.25 0 0 0 0 12.5M8 4.5V8l2.25 1.5',
} as const;
export type IconName = keyof typeof PATHS;

export function pathOfIcon(name: IconName): string {
  return PATHS[name];
}

/** An icon beside a text that says the same. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
