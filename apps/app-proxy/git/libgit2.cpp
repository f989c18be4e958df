#include "app-proxy/git/libgit2.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>

namespace gitops::app_proxy::libgit2 {
namespace {

constexpr std::size_t kMapWindow = 8UL * 1024 * 1024;
constexpr std::size_t kMapLimit = 256UL * 1024 * 1024;
constexpr ssize_t kObjectCache = 16L * 1024 * 1024;

}  // namespace

void start() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::git_libgit2_init();
    for (const int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
                            GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL}) {
      ::git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    }
    ::git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, kMapWindow);
    ::git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, kMapLimit);
    ::git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, kObjectCache);
    ::git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECTS, std::size_t{PackLimits{}.objects});
    ::git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECT_SIZE, std::size_t{PackLimits{}.object});
    // The folder may belong to another user id, as on OpenShift. It contains only our clones.
    ::git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    // Disables a search for keep files with every pack; the clones have none.
    ::git_libgit2_opts(GIT_OPT_DISABLE_PACK_KEEP_FILE_CHECKS, 1);
  });
}

void forget_failures() {
  ::git_error_clear();
  errno = 0;
}

Error local_error(std::string_view what) {
  const int errno_now = errno;
  const git_error* last = ::git_error_last();
  const std::string detail = last == nullptr ? "unknown" : last->message;
  Error error{.code = ErrorCode::unavailable,
              .message = "the local clone: " + std::string(what) + ": " + detail,
              .subcode = kBrokenClone};
  // libgit2 has no text for some failures. errno was cleared by forget_failures() or set by a later
  // call.
  for (const int code : {ENOSPC, EDQUOT, EFBIG}) {
    if (errno_now == code || detail.contains(std::strerror(code))) error.subcode = kDiskFull;
  }
  return error;
}

std::unexpected<Error> local_failure(std::string_view what) {
  return std::unexpected(local_error(what));
}

Error remote_error(Wire& wire, std::string_view what) {
  if (auto error = wire.take_error()) {
    error->message = std::string(what) + ": " + error->message;
    return std::move(*error);
  }
  if (wire.stopped()) return {.code = ErrorCode::unavailable, .message = "cancelled"};
  const git_error* last = ::git_error_last();
  const int kind = last == nullptr ? static_cast<int>(GIT_ERROR_NONE) : last->klass;
  if (kind == GIT_ERROR_NET || kind == GIT_ERROR_HTTP) {
    return {.code = ErrorCode::protocol,
            .message = std::string(what) + ": " + wire.url().http.host_header() + ": " +
                       (last == nullptr ? "unknown" : wire.quoted(last->message))};
  }
  return local_error(what);
}

std::string text_of(const git_oid& id) {
  std::string text(GIT_OID_HEXSZ, '\0');
  ::git_oid_fmt(text.data(), &id);
  return text;
}

git_oid id_of(const std::string& text) {
  git_oid id{};
  if (::git_oid_fromstrn(&id, text.data(), text.size()) != 0 || text.size() != GIT_OID_HEXSZ) {
    return git_oid{};
  }
  return id;
}

Result<void> set_reference(git_repository* repository, const std::string& name,
                           const std::string& commit) {
  const git_oid id = id_of(commit);
  git_reference* raw = nullptr;
  if (::git_reference_create(&raw, repository, name.c_str(), &id, 1, nullptr) != 0) {
    return local_failure("naming a commit");
  }
  ::git_reference_free(raw);
  return {};
}

}  // namespace gitops::app_proxy::libgit2
