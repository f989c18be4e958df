#include "gitopsctl/verdicts.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"

namespace gitops::ctl {

namespace {

using std::chrono::milliseconds;

constexpr const char* kOtherServer = "another server may be listening at this address";
constexpr const char* kProxy =
    "check the user name and password in HTTPS_PROXY, HTTP_PROXY or the kubeconfig's proxy-url";

// True when the peer responded, so it is reachable.
bool is_answered(const Error& error) {
  return error.http_status != 0;
}

// True when the peer refused the credential. A refusal by a proxy does not count.
bool is_refusal(const Error& error) {
  return is_answered(error) &&
         (error.code == ErrorCode::unauthenticated || error.code == ErrorCode::forbidden);
}

std::string in_milliseconds(milliseconds took) {
  return std::to_string(took.count()) + " ms";
}

Row reachable(std::string name, std::string version, milliseconds took) {
  Row row = ok(std::move(name),
               (version.empty() ? "answered in " : version + ", ") + in_milliseconds(took));
  if (!version.empty()) row.version = std::move(version);
  row.latency = took;
  return row;
}

std::string api_server_hint(const Error& error) {
  switch (error.code) {
    case ErrorCode::tls:
      return "check the certificate-authority in the kubeconfig; an expired client certificate "
             "can also be the cause";
    case ErrorCode::not_found:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return "check the server in the kubeconfig, and that it is reachable from this machine";
    case ErrorCode::protocol:
      return kOtherServer;
    case ErrorCode::unauthenticated:
    case ErrorCode::forbidden:
      return kProxy;
    default:
      return {};
  }
}

std::string argocd_hint(const Error& error) {
  switch (error.code) {
    case ErrorCode::tls:
      return "set --argocd-ca-file to the certificate authority of argocd-server";
    case ErrorCode::protocol:
      return "an address without a scheme means http://; try https://";
    case ErrorCode::unauthenticated:
    case ErrorCode::forbidden:
      return is_answered(error) ? "" : kProxy;
    case ErrorCode::not_found:
      if (is_answered(error)) return "set --argocd-server-path to argocd-server's root path";
      [[fallthrough]];
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return "from outside the cluster: kubectl port-forward -n argocd service/argocd-server "
             "8080:80, then --argocd-server=localhost:8080";
    default:
      return {};
  }
}

std::string control_plane_hint(const Error& error) {
  switch (error.code) {
    case ErrorCode::tls:
      return "set --control-plane-ca-file to the certificate authority of the control plane";
    case ErrorCode::unauthenticated:
    case ErrorCode::forbidden:
      return kProxy;
    case ErrorCode::not_found:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return "check the address; set HTTPS_PROXY when a proxy is required";
    default:
      return {};
  }
}

}  // namespace

Row api_server_row(const Result<k8s::ServerVersion>& answer, milliseconds took) {
  constexpr const char* kName = "API server";
  // 401 and 403 concern the credentials, which have a row of their own.
  if (!answer && is_refusal(answer.error())) return reachable(kName, {}, took);
  if (!answer) return failed(kName, answer.error(), api_server_hint(answer.error()));
  return reachable(kName, answer->git_version, took);
}

bool is_without_credential(const Error& error) {
  return error.subcode == k8s::subcodes::kNoCredential;
}

Row credentials_row(const Result<std::string>& user) {
  constexpr const char* kName = "credentials";
  if (user) return ok(kName, "accepted as " + *user);
  const Error& error = user.error();
  if (is_without_credential(error)) {
    return failed(kName, error,
                  "kubectl uses the same kubeconfig; compare with kubectl auth whoami");
  }
  if (error.code == ErrorCode::unauthenticated && is_answered(error)) {
    return failed(kName, error, "they have expired or are unknown to this cluster: log in again");
  }
  if (error.http_status == 404) {
    return not_known(kName, error, "needs Kubernetes 1.28 or later");
  }
  return not_known(kName, error, {});
}

Row permission_row(const Permission& permission, const std::string& ns,
                   const std::vector<PermissionAnswer>& answers) {
  std::vector<std::string> missing;
  const Error* error = nullptr;
  for (const PermissionAnswer& answer : answers) {
    if (!answer.allowed) {
      if (error == nullptr) error = &answer.allowed.error();
    } else if (!*answer.allowed) {
      missing.push_back(answer.verb + (answer.name.empty() ? "" : " " + answer.name));
    }
  }
  Row row;
  if (!missing.empty()) {
    const bool all = missing.size() == answers.size();
    row = denied(permission.daemon, all ? "not allowed" : "not allowed to " + join(missing, ", "),
                 "needed to " + permission.purpose + "; a " +
                     (permission.everywhere ? "ClusterRole" : "Role in namespace " + ns) +
                     " grants it");
  } else if (error != nullptr) {
    row = not_known(permission.daemon, *error, {});
  } else {
    row = ok(permission.daemon, {});
  }
  row.subject = describe(permission, ns);
  return row;
}

Row argocd_row(const Result<std::string>& answer, milliseconds took) {
  constexpr const char* kName = "argocd-server";
  if (!answer) return failed(kName, answer.error(), argocd_hint(answer.error()));
  const std::string version = string_at(parse_json_object(*answer), {"Version"});
  if (version.empty()) {
    return failed(kName, {.code = ErrorCode::protocol, .message = "the answer names no version"},
                  kOtherServer);
  }
  return reachable(kName, version, took);
}

Row argocd_token_row(const Result<bool>& may_get_applications) {
  constexpr const char* kName = "token";
  if (!may_get_applications) {
    const Error& error = may_get_applications.error();
    if (is_refusal(error)) {
      return failed(kName, error, "create a new one: argocd account generate-token --account NAME");
    }
    return not_known(kName, error, {});
  }
  if (*may_get_applications) return ok(kName, "accepted, may get all Applications");
  return denied(kName, "accepted, but may not get all Applications",
                "add a policy for its account to argocd-rbac-cm: "
                "p, NAME, applications, get, */*, allow");
}

Row argocd_clusters_row(const Result<bool>& may_get_clusters) {
  constexpr const char* kName = "clusters";
  if (!may_get_clusters) return not_known(kName, may_get_clusters.error(), {});
  if (*may_get_clusters) return ok(kName, "the token may get all clusters");
  return denied(kName, "the token may not get all clusters, so app-proxy reports none or some",
                "add a policy for its account to argocd-rbac-cm: "
                "p, NAME, clusters, get, *, allow");
}

std::vector<Row> control_plane_rows(const Result<std::string>& account, milliseconds took) {
  constexpr const char* kPeer = "control plane";
  constexpr const char* kToken = "token";
  if (account) {
    return {reachable(kPeer, {}, took),
            ok(kToken, account->empty() ? "accepted" : "accepted, of account " + *account)};
  }
  const Error& error = account.error();
  if (is_refusal(error)) {
    return {
        reachable(kPeer, {}, took),
        failed(kToken, error, "it has expired, was deleted, or belongs to another control plane")};
  }
  return {failed(kPeer, error, control_plane_hint(error)),
          skipped(kToken, "the control plane could not be asked")};
}

}  // namespace gitops::ctl
