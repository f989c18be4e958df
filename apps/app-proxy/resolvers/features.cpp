#include "app-proxy/resolvers/features.hpp"

#include <string>

#include "app-proxy/actions/answers.hpp"

namespace gitops::app_proxy {

Error not_available(Feature feature) {
  const auto because = [](std::string message, std::string_view reason = {}) {
    return Error{.code = ErrorCode::unavailable, .message = std::move(message), .subcode = reason};
  };
  switch (feature) {
    case Feature::git_integrations:
      return because(
          "the runtime has no access to its Kubernetes API server, where Git integrations are "
          "stored; see its log");
    case Feature::commits:
      return because("the runtime has no folder for clones; see its log");
    case Feature::clusters:
      return because("the runtime has no access to its cluster");
    case Feature::rollouts:
      return because("the runtime has no access to its Kubernetes API server; see its log");
    case Feature::applications:
      return because(
          "the runtime is not configured for an Argo CD; set app-proxy.actions.enabled in the "
          "values of its chart, or ARGO_CD_URL",
          action_errors::kNotAvailable);
    case Feature::workflows:
      return because("the runtime is not configured for Argo Workflows; set ARGO_WORKFLOWS_URL",
                     action_errors::kNotAvailable);
    case Feature::logs:
      break;
  }
  return because("logs are not available yet");
}

}  // namespace gitops::app_proxy
