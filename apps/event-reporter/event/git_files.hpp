#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "event-reporter/event/app_view.hpp"
#include "event-reporter/ledger/resource_id.hpp"

// The files in Git that an application's manifests come from (docs/reference/events.md, `path` and `gitManifest`).
// Pure.
namespace gitops::reporter {

// Returns the body of app-proxy's POST /api/source-files about the source that Argo CD compared the
// application with. Nothing when the source is no plain folder of manifests at a commit: several
// sources, Helm, kustomize, plugins and Jsonnet settings.
std::optional<std::string> source_files_request(const AppView& app);

// The response of app-proxy.
class GitFiles {
 public:
  struct File {
    std::string path;
    std::string text;  // empty: not provided
  };
  // Parses a response; invalid_data when it is something else.
  static Result<GitFiles> parse(std::string_view answer);

  // Returns the file of an object. A file may leave the namespace out. Null when there is none, or more
  // than one.
  [[nodiscard]] const File* find(const ResourceId& id) const;
  // Returns roughly the memory that it takes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::vector<File> files_;
  // Indices by ResourceId::identity(); kSeveral: several files contain the object.
  std::unordered_map<std::string, std::size_t> by_object_;
  std::size_t bytes_ = 0;
};

}  // namespace gitops::reporter
