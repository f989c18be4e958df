/** Where the chart gitops-control-plane serves inside of its cluster, by the names of docs/get-started/quickstart.md. */
const SERVICE = 'http://control-plane.gitops-control-plane';

/** The address that a runtime gets. A page that is open at localhost has come through a port-forward, which pods do not see. */
export function addressFor(origin: string): string {
  return /^https?:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(origin) ? SERVICE : origin;
}

/** Returns a text as one word of a shell. Names come from addresses and from runtimes, and commands are copied. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns whether the chart takes a name for a runtime. The control plane also takes longer ones. */
export function isRuntimeName(name: string): boolean {
  return name.length <= 38 && /^[a-z]([a-z0-9-]*[a-z0-9])?$/.test(name);
}

/** The Secret with a user's token, by which the runtime registers itself. */
export const TOKEN_COMMAND = 'kubectl -n argocd create secret generic gitops-user-token --from-file=token=user-token';

/** The command that adds a runtime; docs/get-started/quickstart.md has the same one. */
export function installCommand(origin: string, runtime = 'my-runtime'): string {
  const name = shellWord(runtime);
  return `helm upgrade --install gitops-runtime charts/gitops-runtime -n argocd \\
  --set global.codefresh.url=${addressFor(origin)} \\
  --set global.codefresh.userToken.secretKeyRef.name=gitops-user-token \\
  --set global.codefresh.userToken.secretKeyRef.key=token \\
  --set global.runtime.name=${name} \\
  --set global.integrations.argo-cd.server.auth.passwordSecretKeyRef.name=argocd-initial-admin-secret \\
  --set global.integrations.argo-cd.server.auth.passwordSecretKeyRef.key=password \\
  --set app-proxy.enabled=true \\
  --set global.imageRegistry=registry.example.com/team`;
}
export const INSTALL = installCommand(typeof location === 'undefined' ? 'https://gitops.example.com' : location.origin);
