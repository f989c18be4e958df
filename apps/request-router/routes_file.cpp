#include "request-router/routes_file.hpp"

#include <utility>

#include <sys/stat.h>

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
  struct stat status{};
  std::string now;
  if (::stat(path_.c_str(), &status) == 0) {
    now = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" +
          std::to_string(status.st_size) + ":" + std::to_string(status.st_mtim.tv_sec) + "." +
          std::to_string(status.st_mtim.tv_nsec);
  }
  return std::exchange(seen_, now) != now;
}

}  // namespace gitops::router
