// The address of a worker is a sink of Trusted Types. One policy lets scripts of the console through, and nothing else.

interface Policy {
  createScriptURL(address: string): string;
}
let policy: Policy | undefined;

/** Returns the address of a worker's script as the browser wants it. Throws TypeError for one that is not ours. */
export function scriptAddress(address: string): string {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): Policy } }).trustedTypes;
  policy ??= types?.createPolicy('console', {
    createScriptURL: (text: string) => {
      if (/^\/assets\/[\w.-]+\.js$/.test(text)) return text;
      throw new TypeError(`not a script of the console: ${text}`);
    },
  });
  return policy ? policy.createScriptURL(address) : address;
}
