#include "event-reporter/argo/argocd_failure.hpp"

namespace gitops::reporter {
namespace {

// Returns true for a failed connection attempt, and for a response that every request would get.
bool surely_concerns_server(const Error& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
      return error.http_status == 0;
    case ErrorCode::tls:
    case ErrorCode::protocol:
    case ErrorCode::unauthenticated:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool may_concern_server(const Error& error) {
  switch (error.code) {
    case ErrorCode::timeout:
    case ErrorCode::too_many_requests:
      return true;
    case ErrorCode::unavailable:
      return error.http_status != 500;  // argocd-server's status for errors without one
    default:
      return surely_concerns_server(error);
  }
}

void ArgoCdFailure::answered() {
  failing_.clear();
  text_.clear();
}

void ArgoCdFailure::failed(std::string_view application, const Error& error) {
  if (!application.empty() && failing_.size() < kApplications) failing_.emplace(application);
  if (application.empty() || surely_concerns_server(error) || failing_.size() >= kApplications) {
    text_ = error.message;
  }
}

}  // namespace gitops::reporter
