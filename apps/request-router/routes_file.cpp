#include "request-router/routes_file.hpp"

#include <utility>

#include "common/core/small_file.hpp"
#include "common/core/text.hpp"

namespace gitops::router {

RoutesFile::RoutesFile(std::string path, RouteSettings base)
    : path_(std::move(path)), base_(std::move(base)) {
  changed();
}

Result<RouteSettings> RoutesFile::read() const {
  RouteSettings settings = base_;
  if (path_.empty()) return settings;
  ConfigReader reader("routes", "");
  bind_routes(reader, settings);
  const auto outcome = reader.load({"--config", path_}, {});
  if (outcome.mistakes.empty()) return settings;
  std::string all;
  for (const auto& mistake : outcome.mistakes) all.append(all.empty() ? "" : "; ").append(mistake);
  return fail(ErrorCode::invalid_data, all);
}

bool RoutesFile::changed() {
  if (path_.empty()) return false;
  auto now = file_fingerprint(path_);
  if (now == seen_) return false;
  const auto text = read_small_file(path_);
  // A file that is being written is empty for a moment, and without a setting no webhook needs a
  // signature. One that is still empty at the next call is meant.
  const bool is_empty = text && trimmed(*text).empty();
  if (is_empty && std::exchange(empty_, now) != now) return false;
  const bool may_be_read_later = !text && text.error().code == ErrorCode::unavailable;
  if (!may_be_read_later) seen_ = std::move(now);
  return true;
}

}  // namespace gitops::router
