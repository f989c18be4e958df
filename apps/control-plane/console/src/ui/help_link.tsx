/** The address at which the documents are searched for these words. Pages may get other names; their words stay. */
export function helpAddress(words: string): string {
  return `/help?q=${encodeURIComponent(words).replaceAll('%20', '+')}`;
}

/** A link to what the documents say about this. A test checks that they say something. */
export function HelpLink({ help, children = 'Help on this' }: { help: string; children?: string }) {
  return <a href={helpAddress(help)}>{children}</a>;
}
