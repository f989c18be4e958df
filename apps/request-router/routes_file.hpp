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
  // True when the file is not the one that was seen by the last call. Looks at its inode, size and
  // time; a mounted ConfigMap is replaced as a whole.
  bool changed();

 private:
  std::string path_;
  RouteSettings base_;
  std::string seen_;
};

}  // namespace gitops::router
