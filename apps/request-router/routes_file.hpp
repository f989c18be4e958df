#pragma once

#include <string>

#include "request-router/config.hpp"

namespace gitops::router {

// The routes file. Its settings take precedence over flags and environment, and may change at any
// time.
class RoutesFile {
 public:
  // An empty path means no file.
  RoutesFile(std::string path, RouteSettings base);

  // Returns the given settings, overridden by those of the file. The error lists every mistake.
  [[nodiscard]] Result<RouteSettings> read() const;
  // Returns whether the file was replaced or written since the last call, or cannot be read
  // although it exists. A file that is empty counts at the second call.
  bool changed();

 private:
  std::string path_;
  RouteSettings base_;
  std::string seen_;
  std::string empty_;  // its fingerprint when it was empty last
};

}  // namespace gitops::router
