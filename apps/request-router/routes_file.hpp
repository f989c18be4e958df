#pragma once

#include <string>

#include "request-router/config.hpp"

namespace gitops::router {

// The file whose settings win over those the daemon was started with, and may change at any time.
class RoutesFile {
 public:
  // An empty path: there is none.
  RoutesFile(std::string path, RouteSettings base);

  // The settings with the file's, every mistake in one error.
  [[nodiscard]] Result<RouteSettings> read() const;
  // True when the file is another one, or was written, since the last call.
  bool changed();

 private:
  std::string path_;
  RouteSettings base_;
  std::string seen_;
};

}  // namespace gitops::router
