#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::reporter {

// Detects a failure of argocd-server as a whole from single reads. A read of one application may take
// too long or get a 503 because of this application's repository or cluster; such failures count only
// when several applications have them and nothing succeeds between. Pure.
class ArgoCdFailure {
 public:
  static constexpr std::size_t kApplications = 3;

  // Records a response of Argo CD, also one that is an error about its object.
  void answered();
  // Records a failed request. `application` is the key of its application; an empty key means a
  // request about no application, whose failure is the server's.
  void failed(std::string_view application, const Error& error);

  // Returns the reason; empty while the server works. Not empty before the first response.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::set<std::string, std::less<>> failing_;  // since the last response
  std::string text_ = "Argo CD was not asked yet";
};

// Returns whether the error may concern the server or the path to it, and not only the object of the
// request.
[[nodiscard]] bool may_concern_server(const Error& error);

}  // namespace gitops::reporter
