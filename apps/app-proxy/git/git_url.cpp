#include "app-proxy/git/git_url.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxUrl = 2048;
constexpr std::size_t kMaxBranch = 244;  // a file name of 255 bytes with room for ".lock"

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

std::string_view without_slashes(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

// Returns the fault of a path's segments, each decoded once; empty when there is none.
std::string_view fault_of_path(std::string_view path) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto decoded = percent_decode(path.substr(0, slash));
    if (!decoded) return "has a malformed escape in its path";
    if (decoded->empty()) return "has an empty path segment";
    if (*decoded == "." || *decoded == "..") return "has a path segment \".\" or \"..\"";
    if (decoded->starts_with('-')) return "has a path segment that begins with '-'";
    const auto bad = [](char c) { return is_control(c) || c == '/' || c == '\\' || c == '%'; };
    if (std::ranges::any_of(*decoded, bad)) {
      return "has a control character, slash, backslash or percent sign escaped in its path";
    }
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
    if (path.empty()) return "has an empty path segment";
  }
  return {};
}

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::invalid_argument, "the repository URL " + std::string(why));
}

bool is_scp_like(std::string_view text) {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && text.find("://") == std::string_view::npos &&
         text.find('/') > colon;
}

// Parses the URL with all checks except those of its path.
Result<http::Url> parse_base(std::string_view text, Scheme scheme) {
  if (text.empty()) return refuse("is empty");
  if (text.size() > kMaxUrl) return refuse("is longer than 2048 bytes");
  if (text.starts_with('-')) return refuse("begins with '-'");
  if (text.starts_with("ssh:") || text.starts_with("git+ssh:") || text.starts_with("ssh+git:") ||
      is_scp_like(text)) {
    return refuse("is for SSH, which is not supported; use https");
  }
  if (text.starts_with("file:") || text.starts_with('/') || text.starts_with('.')) {
    return refuse("names a local file; use https");
  }
  auto url = http::parse_url(text);
  if (!url) return refuse("is not a valid https URL");
  if (url->scheme != "https" && (url->scheme != "http" || scheme == Scheme::https_only)) {
    return refuse("does not begin with https://");
  }
  // Azure's clone URLs have the organisation as the user name.
  if (url->host == "dev.azure.com" && !url->userinfo.contains(':')) url->userinfo.clear();
  if (!url->userinfo.empty()) return refuse("holds a credential; remove it");
  return std::move(*url);
}

Result<RepositoryUrl> finish(http::Url url) {
  const std::string_view inner = without_slashes(url.path);
  if (inner.empty()) return refuse("names no repository");
  if (const auto fault = fault_of_path(inner); !fault.empty()) return refuse(fault);
  std::string name(without_suffix(inner, ".git"));
  if (name.empty() || name.ends_with('/')) return refuse("names no repository");
  url.path = "/" + std::string(inner);
  return RepositoryUrl{.http = std::move(url), .name = std::move(name)};
}

// End of the repository's part of a path, and whether ".git" must be added.
struct RepositoryEnd {
  std::size_t at = 0;
  bool lacks_suffix = false;
};
Result<RepositoryEnd> repository_end(std::string_view path) {
  const auto segment_end = [path](std::size_t from) {
    return std::min(path.find('/', from), path.size());
  };
  for (auto at = path.find(".git"); at != std::string_view::npos; at = path.find(".git", at)) {
    at += 4;
    if (segment_end(at) == at) return RepositoryEnd{.at = at};
  }
  constexpr std::string_view kAzure = "/_git/";
  if (const auto at = path.find(kAzure); at != std::string_view::npos) {
    const auto name = at + kAzure.size();
    if (segment_end(name) == name) return refuse("names no repository behind \"_git\"");
    return RepositoryEnd{.at = segment_end(name)};
  }
  const auto owner = path.find_first_not_of('/');
  const auto name = owner == std::string_view::npos ? owner : path.find('/', owner);
  if (name == std::string_view::npos || segment_end(name + 1) == name + 1) {
    return refuse("names no repository, as https://host/owner/name.git");
  }
  return RepositoryEnd{.at = segment_end(name + 1), .lacks_suffix = true};
}

// Parses the reference in a query.
Result<void> read_query(std::string_view query, RepositorySpecifier& into) {
  using Kind = RepositorySpecifier::Kind;
  const auto equals = query.find('=');
  const auto key = query.substr(0, equals);
  const bool is_known = key == "ref" || key == "tag" || key == "sha";
  if (!is_known || equals == std::string_view::npos || query.contains('&')) {
    return refuse("has a query other than ?ref=BRANCH, ?tag=TAG or ?sha=COMMIT");
  }
  const auto value = percent_decode(query.substr(equals + 1));
  if (!value) return refuse("has a malformed escape in its query");
  std::string_view ref = *value;
  if (key == "sha") {
    const bool is_hex = std::ranges::all_of(ref, [](char c) { return hex_value(c) >= 0; });
    if (!is_hex || ref.size() < 7 || ref.size() > 40) return refuse("has no commit in ?sha=");
    into.ref = ref;
    into.kind = Kind::commit;
    return {};
  }
  constexpr std::string_view kTags = "refs/tags/";
  if (key == "tag" || ref.starts_with(kTags)) {
    into.kind = Kind::tag;
    if (ref.starts_with(kTags)) ref.remove_prefix(kTags.size());
  }
  if (key == "ref" && ref == "HEAD") return {};
  // Names of tags follow the same rules.
  auto name = parse_branch(ref);
  if (!name) return std::unexpected(std::move(name.error()));
  into.ref = std::move(*name);
  return {};
}

}  // namespace

std::string RepositoryUrl::key() const {
  return http.scheme + "://" + http.host + ":" + std::to_string(http.port) + "/" + name;
}

Result<RepositoryUrl> parse_repository_url(std::string_view text, Scheme scheme) {
  auto url = parse_base(text, scheme);
  if (!url) return std::unexpected(std::move(url.error()));
  if (!url->query.empty() || text.contains('?')) return refuse("has a query");
  return finish(std::move(*url));
}

Result<RepositorySpecifier> parse_specifier(std::string_view text, Scheme scheme) {
  auto url = parse_base(text, scheme);
  if (!url) return std::unexpected(std::move(url.error()));
  RepositorySpecifier result;
  if (!url->query.empty()) {
    if (auto read = read_query(url->query, result); !read) return std::unexpected(read.error());
    url->query.clear();
  }
  const std::string path = std::move(url->path);
  const auto end = repository_end(path);
  if (!end) return std::unexpected(end.error());
  url->path = path.substr(0, end->at);
  if (end->lacks_suffix) {
    if (const auto fault = fault_of_path(without_slashes(url->path)); !fault.empty()) {
      return refuse(fault);
    }
    url->path += ".git";
  }
  auto repository = finish(std::move(*url));
  if (!repository) return std::unexpected(std::move(repository.error()));
  const auto folder = without_slashes(std::string_view(path).substr(end->at));
  if (const auto fault = fault_of_path(folder); !fault.empty()) return refuse(fault);
  auto decoded = percent_decode(folder);
  if (!decoded) return refuse("has a malformed escape in its path");
  result.repository = std::move(*repository);
  result.path = std::move(*decoded);
  return result;
}

Result<std::string> parse_branch(std::string_view text) {
  const auto refuse_branch = [](std::string_view why) {
    return fail(ErrorCode::invalid_argument, "the branch name " + std::string(why));
  };
  if (text.starts_with("refs/heads/")) text.remove_prefix(std::string_view("refs/heads/").size());
  if (text.empty()) return refuse_branch("is empty");
  if (text.size() > kMaxBranch) return refuse_branch("is longer than 244 bytes");
  if (text.starts_with("refs/")) return refuse_branch("is not that of a branch");
  if (text == "@" || text == "HEAD") return refuse_branch("is reserved by Git");
  if (text.starts_with('-')) return refuse_branch("begins with '-'");
  if (text.ends_with('.')) return refuse_branch("ends with a dot");
  for (const std::string_view part : {"..", "//", "@{"}) {
    if (text.contains(part)) return refuse_branch("contains \"" + std::string(part) + "\"");
  }
  const auto bad = [](char c) {
    return is_control(c) || std::string_view(" ~^:?*[\\").contains(c);
  };
  if (std::ranges::any_of(text, bad)) {
    return refuse_branch("contains a space, a control character or one of ~ ^ : ? * [ \\");
  }
  for (std::string_view rest = text; true;) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (part.empty()) return refuse_branch("begins or ends with a slash");
    if (part.starts_with('.')) return refuse_branch("has a component that begins with a dot");
    if (part.ends_with(".lock")) return refuse_branch("has a component that ends in \".lock\"");
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return std::string(text);
}

bool is_object_id(std::string_view text) {
  return text.size() == 40 && std::ranges::all_of(text, [](char c) { return hex_value(c) >= 0; });
}

}  // namespace gitops::app_proxy
