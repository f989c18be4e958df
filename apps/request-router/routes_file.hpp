#pragma once

#include <string>

#include "common/core/small_file.hpp"
#include "request-router/config.hpp"

namespace gitops::router {

// The routes file. Its settings take precedence over flags and environment, and may change at any
// time.
class RoutesFile {
 public:
  // An empty path means no file.
  RoutesFile(std::string path, RouteSettings base);

  // Returns the given settings, overridden by those of the file. The error lists every mistake.
  // `unavailable` when the file is another version than at the last call of changed().
  [[nodiscard]] Result<RouteSettings> read() const;
  // Returns whether the file was replaced or written since the last call, or cannot be read
  // although it exists. A file that is empty counts at the second call.
  bool changed();

 private:
  std::string path_;
  RouteSettings base_;
  std::string seen_;       // version that counts
  std::string looked_at_;  // version at the last call of changed()
  EmptyFileWatch empty_;
};

}  // namespace gitops::router
