#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"

// Parsing of responses of Git hosts. Their content is not trusted.
namespace gitops::app_proxy {

// JSON of a response, an object or an array. Views borrow from it.
class HostJson {
 public:
  enum class Expect { object, array };
  // Parses a text. `invalid_data` when it is something else, or nested too deeply.
  static Result<HostJson> parse(std::string_view text, Expect expect);

  [[nodiscard]] JsonView operator[](std::string_view key) const { return root_[key]; }
  [[nodiscard]] JsonView root() const { return root_; }
  [[nodiscard]] JsonItems items() const { return root_.items(); }

 private:
  static constexpr std::size_t kMaxDepth = 64;
  JsonParser parser_{kMaxDepth};
  JsonView root_;
};

// Returns a string, truncated to 64 KiB.
std::string host_text(JsonView value);
// Returns an id: a string, or the digits of a number.
std::string host_id(JsonView value);
// Returns an http or https URL without its user, else an empty text. Clients use it for links and
// clones.
std::string host_url(JsonView value);
// Returns an ssh:// URL or user@host:path without control characters, else an empty text.
std::string host_ssh_url(JsonView value);
// Returns an RFC 3339 time unchanged. Milliseconds since the epoch (Bitbucket Server) are converted
// to it; other values become an empty text.
std::string host_time(JsonView value);
// Returns a mail address that is valid in a commit, else an empty text.
std::string host_mail(JsonView value);

// Returns "<id>+<login>@users.noreply.<host>", for users whose address the host does not report.
std::string no_reply_mail(std::string_view id, std::string_view login, std::string_view host);

// Returns the id that Git gives a file with this content, for hosts that do not report it.
std::string blob_id(std::string_view content);

// Returns `path` with each segment percent-encoded.
std::string encode_path(std::string_view path);

}  // namespace gitops::app_proxy
