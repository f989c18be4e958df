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
  // It may have been emptied after the look of changed(), which decides whether that counts.
  if (file_fingerprint(path_) != looked_at_) {
    return fail(ErrorCode::unavailable, path_ + ": was changed while it was read");
  }
  if (outcome.mistakes.empty()) return settings;
  std::string all;
  for (const auto& mistake : outcome.mistakes) all.append(all.empty() ? "" : "; ").append(mistake);
  return fail(ErrorCode::invalid_data, all);
}

bool RoutesFile::changed() {
  if (path_.empty()) return false;
  auto now = file_fingerprint(path_);
  looked_at_ = now;
  if (now == seen_) return false;
  const auto text = read_small_file(path_);
  // An empty file has no settings, so that no webhook would need a signature.
  const bool is_empty = text && trimmed(*text).empty();
  const bool stays_empty = empty_.stays_empty(is_empty, now);
  if (is_empty && !stays_empty) return false;
  const bool may_be_read_later = !text && text.error().code == ErrorCode::unavailable;
  if (!may_be_read_later) seen_ = std::move(now);
  return true;
}

}  // namespace gitops::router
