#pragma once

#include <string>
#include <string_view>

namespace gitops::test {

// An Argo CD Application as the API server writes it (compact, keys sorted), with managed fields, a
// sync history, the result of the last operation and `resources` entries in its status. 20
// resources make about 8.6 KiB, the size seen in real clusters.
inline std::string sample_application(std::string_view ns, std::string_view name,
                                      std::string_view resource_version, int resources = 19) {
  const std::string app(name);
  const std::string revision = "5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b";
  std::string o;
  o.reserve(9000);
  o += R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"annotations":{)";
  o +=
      R"("kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"argoproj.io/v1alpha1\",\"kind\":\"Application\",\"metadata\":{\"name\":\")";
  o +=
      app +
      R"(\"}}\n"},"creationTimestamp":"2026-03-04T09:15:27Z","finalizers":["resources-finalizer.argocd.argoproj.io"],"generation":42,)";
  o += R"("labels":{"app.kubernetes.io/part-of":"shop","team":"payments"},"managedFields":[)";
  for (const std::string_view manager :
       {"kubectl-client-side-apply", "argocd-application-controller"}) {
    o +=
        R"({"apiVersion":"argoproj.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:finalizers":{".":{},"v:\"resources-finalizer.argocd.argoproj.io\"":{}}},"f:spec":{".":{},"f:destination":{".":{},"f:namespace":{},"f:server":{}},"f:project":{},"f:source":{".":{},"f:path":{},"f:repoURL":{},"f:targetRevision":{}}},"f:status":{".":{},"f:health":{".":{},"f:status":{}},"f:history":{},"f:operationState":{},"f:resources":{},"f:sync":{}}},"manager":")";
    o += manager;
    o += R"(","operation":"Update","time":"2026-03-04T09:15:27Z"},)";
  }
  o.back() = ']';
  o += R"(,"name":")" + app + R"(","namespace":")";
  o += ns;
  o += R"(","resourceVersion":")";
  o += resource_version;
  o +=
      R"(","uid":"7d1c3a52-0b6e-4b7e-9a43-)" + app +
      R"("},"spec":{"destination":{"namespace":"shop","server":"https://kubernetes.default.svc"},"project":"default","source":{"path":"apps/)" +
      app;
  o +=
      R"(","repoURL":"https://git.example.com/shop/deploy.git","targetRevision":"main"},"syncPolicy":{"automated":{"prune":true,"selfHeal":true},"syncOptions":["CreateNamespace=true"]}},"status":{"controllerNamespace":"argocd","health":{"lastTransitionTime":"2026-03-04T09:20:01Z","status":"Healthy"},"history":[)";
  for (int i = 0; i < 5; ++i) {
    o += R"({"deployStartedAt":"2026-03-04T09:15:27Z","deployedAt":"2026-03-04T09:15:29Z","id":)" +
         std::to_string(i);
    o += R"(,"initiatedBy":{"automated":true},"revision":")" + revision +
         R"(","source":{"path":"apps/)" + app +
         R"(","repoURL":"https://git.example.com/shop/deploy.git","targetRevision":"main"}},)";
  }
  o.back() = ']';
  o +=
      R"(,"operationState":{"finishedAt":"2026-03-04T09:15:29Z","message":"successfully synced, all tasks run","operation":{"initiatedBy":{"automated":true},"retry":{"limit":5},"sync":{"prune":true,"revision":")" +
      revision +
      R"("}},"phase":"Succeeded","startedAt":"2026-03-04T09:15:27Z","syncResult":{"resources":[)";
  for (int i = 0; i < resources / 2; ++i) {
    o +=
        R"({"group":"apps","hookPhase":"Running","kind":"Deployment","message":"deployment.apps/web-)" +
        std::to_string(i) + R"( configured","name":"web-)" + std::to_string(i) +
        R"(","namespace":"shop","status":"Synced","syncPhase":"Sync","version":"v1"},)";
  }
  o.back() = resources >= 2 ? ']' : '[';
  if (resources < 2) o += ']';
  o +=
      R"(,"revision":")" + revision +
      R"("}},"reconciledAt":"2026-03-04T09:20:01Z","resourceHealthSource":"appTree","resources":[)";
  for (int i = 0; i < resources; ++i) {
    o += R"({"group":"apps","health":{"status":"Healthy"},"kind":"Deployment","name":"web-)" +
         std::to_string(i) + R"(","namespace":"shop","status":"Synced","version":"v1"},)";
  }
  o.back() = resources >= 1 ? ']' : '[';
  if (resources < 1) o += ']';
  o +=
      R"(,"sourceType":"Kustomize","summary":{"images":["registry.example.com/shop/web:1.4.2"]},"sync":{"comparedTo":{"destination":{"namespace":"shop","server":"https://kubernetes.default.svc"},"source":{"path":"apps/)" +
      app;
  o +=
      R"(","repoURL":"https://git.example.com/shop/deploy.git","targetRevision":"main"}},"revision":")" +
      revision + R"(","status":"Synced"}}})";
  return o;
}

}  // namespace gitops::test
