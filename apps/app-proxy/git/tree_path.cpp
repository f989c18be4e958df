#include "app-proxy/git/tree_path.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "app-proxy/git/git_url.hpp"
#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxDepth = 64;

// Checks for code points that HFS+ ignores when it compares names.
bool is_ignored_by_hfs(std::string_view sequence) {
  if (sequence.size() != 3) return false;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  const unsigned point = ((byte(0) & 0x0fU) << 12U) | ((byte(1) & 0x3fU) << 6U) | (byte(2) & 0x3fU);
  return (point >= 0x200c && point <= 0x200f) || (point >= 0x202a && point <= 0x202e) ||
         (point >= 0x206a && point <= 0x206f) || point == 0xfeff;
}

// Returns a name as the least exact file system compares it: lower case, without ignored code
// points, without a stream's name, without dots and spaces at the end.
std::string folded(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const auto length = utf8_length(name);
    const auto sequence = name.substr(0, length);
    if (!is_ignored_by_hfs(sequence)) result += sequence;
    name.remove_prefix(length);
  }
  if (const auto colon = result.find(':'); colon != std::string::npos) result.resize(colon);
  while (result.ends_with(' ') || result.ends_with('.')) result.pop_back();
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Checks for a short name of NTFS: "gitmod~1" to "gitmod~4", or "gi7eba~1", which follows when
// those are taken.
bool is_short_name_of_gitmodules(std::string_view name) {
  if (name.size() != 8) return false;
  if (name.starts_with("gitmod~")) return name[7] >= '1' && name[7] <= '4';
  return name.starts_with("gi7eb") && name.contains('~');
}

std::string_view fault_of_name(std::string_view name) {
  if (name.empty()) return "has an empty name in it";
  if (name.size() > kMaxName) return "has a name of more than 255 bytes in it";
  for (std::string_view rest = name; !rest.empty();) {
    const auto length = utf8_length(rest);
    if (length == 0) return "is not valid UTF-8";
    const auto first = static_cast<unsigned char>(rest.front());
    if (first < 0x20 || first == 0x7f) return "has a control character in it";
    if (first == '\\') return "has a backslash in it";
    rest.remove_prefix(length);
  }
  const std::string plain = folded(name);
  if (plain.empty()) return "has a name of dots and spaces only in it";
  if (plain == ".git" || plain == "git~1") return "leads into Git's own folder";
  if (plain == ".gitmodules" || is_short_name_of_gitmodules(plain)) {
    return "concerns submodules, which are not supported";
  }
  return {};
}

std::unexpected<Error> refuse(std::string_view path, std::string_view why) {
  std::string shown;
  append_json_string(shown, path.substr(0, 200), JsonEscape::minimal);
  return fail(ErrorCode::invalid_argument, "the path " + shown + " " + std::string(why));
}

}  // namespace

Result<void> check_tree_path(std::string_view path) {
  if (path.empty()) return refuse(path, "is empty");
  if (path.size() > kMaxPath) return refuse(path, "is longer than 4096 bytes");
  std::size_t depth = 0;
  for (std::string_view rest = path; true;) {
    const auto slash = rest.find('/');
    const auto fault = fault_of_name(rest.substr(0, slash));
    if (!fault.empty()) return refuse(path, fault);
    if (++depth > kMaxDepth) return refuse(path, "is deeper than 64 folders");
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

Result<void> check_changes(std::span<const FileChange> changes, std::size_t max_changes,
                           std::size_t max_bytes) {
  if (changes.size() > max_changes) {
    return fail(ErrorCode::too_large, "more than " + std::to_string(max_changes) + " files");
  }
  std::size_t bytes = 0;
  std::vector<std::string_view> paths;
  for (const auto& change : changes) {
    if (auto checked = check_tree_path(change.path); !checked) return checked;
    if (!change.revision.empty() && !is_object_id(change.revision)) {
      return refuse(change.path, "comes with a revision that is not an object id");
    }
    bytes += change.content.size();
    paths.push_back(change.path);
  }
  if (bytes > max_bytes) {
    return fail(ErrorCode::too_large,
                "the files have more than " + std::to_string(max_bytes) + " bytes");
  }
  // The order has '/' before every other byte, as in trees, so that a folder is directly before its
  // content.
  const auto key = [](char c) {
    return c == '/' ? 0 : static_cast<int>(static_cast<unsigned char>(c)) + 1;
  };
  std::ranges::sort(paths, [&](std::string_view a, std::string_view b) {
    return std::ranges::lexicographical_compare(a, b, {}, key, key);
  });
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const auto above = paths[i - 1];
    if (paths[i] == above) return refuse(above, "is changed twice");
    if (paths[i].starts_with(above) && paths[i][above.size()] == '/') {
      return refuse(above, "is changed as a file and as a folder");
    }
  }
  return {};
}

}  // namespace gitops::app_proxy
