#include "app-proxy/providers/git_types.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxName = 512;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

bool is_segment(std::string_view segment) {
  if (segment.empty() || segment == "." || segment == "..") return false;
  for (const char c : segment) {
    if (!is_name_character(c)) return false;
  }
  return true;
}

}  // namespace

Result<RepositoryName> parse_repository_name(std::string_view text) {
  const auto refused = [] {
    return fail(ErrorCode::invalid_argument,
                "a repository is named \"owner/name\", of letters, digits, '-', '_', '.' and '~'");
  };
  const auto slash = text.rfind('/');
  if (slash == std::string_view::npos || text.size() > kMaxName) return refused();
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    if (!is_segment(text.substr(begin, end - begin))) return refused();
    begin = end + 1;
  }
  if (text.ends_with(".git")) return refused();
  return RepositoryName{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

Result<void> check_file_path(std::string_view path) {
  const auto refused = [] {
    return fail(ErrorCode::invalid_argument, "the path is not that of a file in a repository");
  };
  if (path.empty() || path.size() > 4096) return refused();
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return refused();
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    if (segment.empty() || segment == "." || segment == "..") return refused();
    begin = end + 1;
  }
  return {};
}

Result<void> check_ref(std::string_view ref) {
  const bool has_bad_character = std::ranges::any_of(ref, [](unsigned char c) {
    return c <= 0x20 || c == 0x7f || std::string_view("~^:?*[\\").contains(static_cast<char>(c));
  });
  if (ref.empty() || ref.size() > 512 || has_bad_character || ref.contains("..") ||
      ref.contains("//") || ref.contains("@{") || ref.contains("/.") || ref.starts_with('.') ||
      ref.starts_with('-') || ref.starts_with('/') || ref.ends_with('/') || ref.ends_with('.') ||
      ref.ends_with(".lock")) {
    return fail(ErrorCode::invalid_argument, "this is not the name of a branch, tag or commit");
  }
  return {};
}

Result<void> check_sha(std::string_view sha) {
  const bool is_hex = std::ranges::all_of(sha, [](char c) { return hex_value(c) >= 0; });
  if (!is_hex || sha.size() < 7 || sha.size() > 64) {
    return fail(ErrorCode::invalid_argument, "this is not the id of a commit");
  }
  return {};
}

Result<void> check_webhook_id(std::string_view id) {
  const bool is_plain = std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '{' || c == '}';
  });
  if (!is_plain || id.empty() || id.size() > 64) {
    return fail(ErrorCode::invalid_argument, "this is not the id of a webhook");
  }
  return {};
}

std::size_t memory_of(const HostPage& page) {
  std::size_t bytes = sizeof(HostPage);
  for (const auto& of : page.repositories) {
    bytes += sizeof(Repository);
    for (const auto* text :
         {&of.id, &of.full_name, &of.owner_login, &of.owner_avatar_url, &of.default_branch,
          &of.clone_url, &of.ssh_url, &of.web_url, &of.pushed_at}) {
      bytes += text->size();
    }
    bytes += of.organisation.value_or("").size() + of.project.value_or("").size();
  }
  return bytes;
}

}  // namespace gitops::app_proxy
