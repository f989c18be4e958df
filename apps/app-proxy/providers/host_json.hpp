#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"

// Reading what Git hosts answer. Everything here is chosen by a stranger.
namespace gitops::app_proxy {

// An answer's JSON, an object or an array. Views borrow from it.
class HostJson {
 public:
  enum class Expect { object, array };
  // `invalid_data` when it is something else, or nested too deeply.
  static Result<HostJson> parse(std::string_view text, Expect expect);

  [[nodiscard]] JsonView operator[](std::string_view key) const { return root_[key]; }
  [[nodiscard]] JsonView root() const { return root_; }
  [[nodiscard]] JsonItems items() const { return root_.items(); }

 private:
  static constexpr std::size_t kMaxDepth = 64;
  JsonParser parser_{kMaxDepth};
  JsonView root_;
};

// A string, at most 64 KiB of it.
std::string host_text(JsonView value);
// An id: a string, or a number's digits.
std::string host_id(JsonView value);
// An http or https URL without its user, else empty: clients make links and clones of it.
std::string host_url(JsonView value);
// An ssh:// URL or user@host:path without control characters, else empty.
std::string host_ssh_url(JsonView value);
// RFC 3339 as it came; milliseconds since the epoch (of Bitbucket Server) are written so; else empty.
std::string host_time(JsonView value);
// A mail address that can be written into a commit, else empty.
std::string host_mail(JsonView value);

// "<id>+<login>@users.noreply.<host>", for users whose address the host does not tell.
std::string no_reply_mail(std::string_view id, std::string_view login, std::string_view host);

// The id that Git gives a file with this content, for hosts that do not tell it.
std::string blob_id(std::string_view content);

// `path` with each segment percent-encoded.
std::string encode_path(std::string_view path);

}  // namespace gitops::app_proxy
