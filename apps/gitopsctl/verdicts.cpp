#include "gitopsctl/verdicts.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/text.hpp"

namespace gitops::ctl {

namespace {

using std::chrono::milliseconds;

// The peer answered: whatever it said, it is there.
bool is_answered(const Error& error) {
  return error.http_status != 0;
}

// The peer looked at the credential and refused it.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::unauthenticated || error.code == ErrorCode::forbidden;
}

std::string in_milliseconds(milliseconds took) {
  return std::to_string(took.count()) + " ms";
}

std::string text_member(const std::string& text, const char* key) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Row reachable(std::string name, std::string version, milliseconds took) {
  Row row = ok(std::move(name),
               (version.empty() ? "answered in " : version + ", ") + in_milliseconds(took));
  if (!version.empty()) row.version = std::move(version);
  row.latency = took;
  return row;
}

// A peer that was asked for its version, under this key of the answer.
Row version_row(std::string name, const Result<std::string>& answer, const char* key,
                milliseconds took, std::string hint) {
  if (!answer) return failed(std::move(name), answer.error(), std::move(hint));
  const std::string version = text_member(*answer, key);
  if (version.empty()) {
    return failed(std::move(name),
                  {.code = ErrorCode::protocol, .message = "the answer names no version"},
                  "does something else answer at this address?");
  }
  return reachable(std::move(name), version, took);
}

std::string api_server_hint(const Error& error) {
  switch (error.code) {
    case ErrorCode::tls:
      return "the kubeconfig's certificate-authority must be that of this cluster; a client "
             "certificate that expired is refused, too";
    case ErrorCode::not_found:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return "the address is that of the kubeconfig: is the cluster up, and reachable from here?";
    case ErrorCode::protocol:
      return "does something else answer at this address?";
    default:
      return {};
  }
}

std::string argocd_hint(const Error& error) {
  switch (error.code) {
    case ErrorCode::tls:
      return "--argocd-ca-file names the certificate authority of argocd-server";
    case ErrorCode::protocol:
      return "without a scheme plain HTTP is spoken; is it https://?";
    case ErrorCode::not_found:
      if (is_answered(error)) return "--argocd-server-path names argocd-server's root path";
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
      return "--control-plane-ca-file names the certificate authority of the control plane";
    case ErrorCode::not_found:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
      return "is the address right? Behind a proxy HTTPS_PROXY names it";
    default:
      return {};
  }
}

}  // namespace

Row api_server_row(const Result<std::string>& answer, milliseconds took) {
  constexpr const char* kName = "API server";
  // 401 and 403 are about who asks, which has a row of its own.
  if (!answer && is_refusal(answer.error())) return reachable(kName, {}, took);
  return version_row(kName, answer, "gitVersion", took,
                     answer ? std::string() : api_server_hint(answer.error()));
}

bool is_without_credential(const Error& error) {
  // As k8s::TokenSource names what failed.
  return !is_answered(error) &&
         (error.message.contains(": exec plugin ") || error.message.contains(": token file "));
}

Row credentials_row(const Result<std::string>& user) {
  constexpr const char* kName = "credentials";
  if (user) return ok(kName, "accepted as " + *user);
  const Error& error = user.error();
  if (is_without_credential(error)) {
    return failed(kName, error,
                  "kubectl reads the same kubeconfig: does kubectl auth whoami work?");
  }
  if (error.code == ErrorCode::unauthenticated) {
    return failed(kName, error, "they expired or are unknown to this cluster: log in again");
  }
  if (error.code == ErrorCode::not_found && is_answered(error)) {
    return not_known(kName, error, "Kubernetes tells who asks since 1.28");
  }
  return not_known(kName, error, {});
}

Row right_row(const Right& right, const std::string& ns, const std::vector<RightAnswer>& answers) {
  std::vector<std::string> missing;
  const Error* error = nullptr;
  for (const RightAnswer& answer : answers) {
    if (!answer.allowed) {
      if (error == nullptr) error = &answer.allowed.error();
    } else if (!*answer.allowed) {
      missing.push_back(answer.verb + (answer.name.empty() ? "" : " " + answer.name));
    }
  }
  Row row;
  if (!missing.empty()) {
    const bool all = missing.size() == answers.size();
    row = denied(right.daemon, all ? "not allowed" : "not allowed to " + join(missing, ", "),
                 "needed to " + right.purpose + "; a " +
                     (right.everywhere ? "ClusterRole" : "Role in namespace " + ns) + " gives it");
  } else if (error != nullptr) {
    row = not_known(right.daemon, *error, {});
  } else {
    row = ok(right.daemon, {});
  }
  row.subject = describe(right, ns);
  return row;
}

Row argocd_row(const Result<std::string>& answer, milliseconds took) {
  return version_row("argocd-server", answer, "Version", took,
                     answer ? std::string() : argocd_hint(answer.error()));
}

Row argocd_token_row(const Result<bool>& may_get_applications) {
  constexpr const char* kName = "token";
  if (!may_get_applications) {
    const Error& error = may_get_applications.error();
    if (is_refusal(error)) {
      return failed(kName, error, "a new one: argocd account generate-token --account NAME");
    }
    return not_known(kName, error, {});
  }
  if (*may_get_applications) return ok(kName, "accepted, and may get every Application");
  return denied(kName, "accepted, but may not get every Application",
                "a policy for its account in argocd-rbac-cm gives it: "
                "p, role:NAME, applications, get, */*, allow");
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
    return {reachable(kPeer, {}, took),
            failed(kToken, error, "it expired, was deleted, or is that of another installation")};
  }
  return {failed(kPeer, error, control_plane_hint(error)),
          skipped(kToken, "the control plane did not answer it")};
}

}  // namespace gitops::ctl
