/** The command that adds a runtime; docs/install.md explains it. */
export function installCommand(url: string, name = 'my-runtime'): string {
  return `helm upgrade --install gitops-runtime charts/gitops-runtime -n argocd \\
  --set global.codefresh.url=${url} \\
  --set global.runtime.name=${name} \\
  --set global.imageRegistry=registry.example.com/team`;
}
export const INSTALL = installCommand(typeof location === 'undefined' ? 'https://gitops.example.com' : location.origin);
