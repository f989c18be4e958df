#include "app-proxy/entities/config_repository.hpp"

#include <algorithm>
#include <cstddef>

namespace gitops::app_proxy {
namespace {

// Checks the last part of a key, or a value: letters and digits at both ends, and these or '-', '_',
// '.' between.
bool is_label_word(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  const auto is_end = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_inner = [&](char c) { return is_end(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= kMaxLength && is_end(text.front()) &&
         is_end(text.back()) && std::ranges::all_of(text, is_inner);
}

}  // namespace

Result<ConfigRepository> RuntimeFiles::repository() const {
  const auto specifier = config_repository();
  if (specifier.empty()) {
    return fail(ErrorCode::unavailable,
                "the account has no shared configuration repository, or the control plane has "
                "not told it yet; an administrator sets it there by updateCsdpSettings");
  }
  auto at = parse_specifier(specifier, scheme);
  if (!at) {
    return fail(
        ErrorCode::unavailable,
        "the account's shared configuration repository is not usable: " + at.error().message);
  }
  if (at->kind != RepositorySpecifier::Kind::branch) {
    return fail(
        ErrorCode::unavailable,
        "the account's shared configuration repository is given at a tag or a commit; it needs "
        "a branch, since runtimes commit to it");
  }
  return ConfigRepository{.at = std::move(*at),
                          .runtime = runtime,
                          .runtime_namespace = runtime_namespace,
                          .is_configuration_runtime = is_configuration_runtime,
                          .is_removed = *is_removed,
                          .is_being_removed = *removals > 0};
}

Task<Result<void>> RuntimeFiles::set_removed(bool removed, Deadline deadline) const {
  *is_removed = removed;
  if (!publish) co_return Result<void>();
  co_return co_await publish(removed, deadline);
}

std::string ConfigRepository::below(std::string_view path) const {
  return at.path.empty() ? std::string(path) : at.path + "/" + std::string(path);
}

std::string ConfigRepository::clusters_folder() const {
  return below("runtimes/" + runtime);
}

std::string ConfigRepository::in_cluster_file() const {
  return clusters_folder() + "/" + std::string(kInClusterName) + ".yaml";
}

std::string ConfigRepository::cluster_file(std::string_view name) const {
  return clusters_folder() + "/" + std::string(name) + ".yaml";
}

std::string ConfigRepository::git_source_file(std::string_view name) const {
  return below("resources/" + runtime + "/" + std::string(name) + ".yaml");
}

std::string ConfigRepository::project_file() const {
  return below("resources/app-projects/" + std::string(kGitSourceProject) + ".yaml");
}

std::string ConfigRepository::default_source_folder() const {
  return below("git-sources/" + runtime + "/default");
}

std::string ConfigRepository::own_resources_folder() const {
  return below("resources/runtimes/" + runtime);
}

std::string ConfigRepository::own_resource_file(std::string_view name) const {
  return own_resources_folder() + "/" + std::string(name) + ".yaml";
}

std::string ConfigRepository::resources_folder() const {
  return below("resources");
}

std::string ConfigRepository::readme_file() const {
  return resources_folder() + "/README.md";
}

std::vector<std::string> ConfigRepository::own_folders() const {
  return {clusters_folder(), below("resources/" + runtime), own_resources_folder()};
}

Result<void> check_entity_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 63;
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (name.empty() || name.size() > kMaxLength || !std::ranges::all_of(name, is_inner) ||
      name.starts_with('-') || name.ends_with('-')) {
    return fail(ErrorCode::invalid_argument,
                "the name must be a DNS label: a to z, 0 to 9 and '-', at most 63 characters");
  }
  if (name == kInClusterName) {
    return fail(ErrorCode::invalid_argument,
                "the runtime itself has an Application \"in-cluster\"");
  }
  return {};
}

bool is_label_value(std::string_view value) {
  return value.empty() || is_label_word(value);
}

bool is_label_key(std::string_view key) {
  constexpr std::size_t kMaxPrefix = 253;
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return is_label_word(key);
  const auto prefix = key.substr(0, slash);
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_inner = [&](char c) { return is_end(c) || c == '-' || c == '.'; };
  return !prefix.empty() && prefix.size() <= kMaxPrefix && std::ranges::all_of(prefix, is_inner) &&
         is_end(prefix.front()) && is_end(prefix.back()) && is_label_word(key.substr(slash + 1));
}

}  // namespace gitops::app_proxy
