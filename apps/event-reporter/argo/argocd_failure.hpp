#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::reporter {

// Whether argocd-server as a whole has failed, as far as single reads tell. A read of one
// application may take too long or be answered with 503 because of this application's repository or
// cluster; such failures count only when several applications have them and nothing succeeds between.
// Pure.
class ArgoCdFailure {
 public:
  static constexpr std::size_t kApplications = 3;

  // Argo CD answered a request, if only with an error about its object.
  void answered();
  // A request failed. `application` is the key of the application that it was about; empty: it was
  // about no application, so its failure is the server's.
  void failed(std::string_view application, const Error& error);

  // The reason; empty while it works. Not empty before the first answer.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::set<std::string, std::less<>> failing_;  // since the last answer
  std::string text_ = "Argo CD was not asked yet";
};

// Whether the error may concern the server or the way to it, and not only the object of the request.
[[nodiscard]] bool may_concern_server(const Error& error);

}  // namespace gitops::reporter
