#include "app-proxy/git/transport.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <git2.h>
#include <git2/sys/transport.h>
#include <new>

#include "app-proxy/git/failure_codes.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/time.hpp"

namespace gitops::app_proxy {
namespace {

// Largest body in memory; larger ones are on disk until they are sent.
constexpr std::size_t kMaxWhole = 1024 * 1024;
// Largest part of an error response's body that is read.
constexpr std::size_t kMaxErrorBody = 16UL * 1024;
constexpr std::size_t kMaxQuotedBody = 200;

using Service = Wire::Service;

std::string_view name_of(Service service) {
  return service == Service::list_for_push || service == Service::push ? "git-receive-pack"
                                                                       : "git-upload-pack";
}

bool is_list(Service service) {
  return service == Service::list_for_fetch || service == Service::list_for_push;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string origin_of(const http::Url& url) {
  return url.scheme + "://" + url.host_header();
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_control = first < 0x20 || first == 0x7f;
    const auto next = length == 0 ? "?" : is_control ? " " : text.substr(0, length);
    if (shown.size() + next.size() > limit) break;
    shown += next;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

// Returns the explanation in the JSON body of an error.
std::string message_in(std::string_view body) {
  JsonParser parser;
  const auto json = parser.parse_object(body, "error");
  if (!json) return {};
  for (const char* member : {"message", "error_description", "error"}) {
    if (const auto text = (*json)[member].text(); !text.empty()) return std::string(text);
  }
  for (const auto item : (*json)["errors"].items()) {
    if (const auto text = item["message"].text(); !text.empty()) return std::string(text);
  }
  return {};
}

// Removes every occurrence of a secret, also in lower case as in a host name.
std::string without(std::string text, std::string_view secret) {
  constexpr std::size_t kShortest = 4;
  if (secret.size() < kShortest) return text;
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const auto found = std::ranges::search(rest, secret, {}, lower, lower);
    result.append(rest.begin(), found.begin());
    if (found.empty()) break;
    result += "[redacted]";
    rest = {found.end(), rest.end()};
  }
  return result;
}

}  // namespace

WireCalls WireCalls::over(HttpBridge& bridge) {
  return {
      .begin =
          [&bridge](http::Url url, http::Request request, std::optional<std::uint64_t> length) {
            return bridge.begin(std::move(url), std::move(request), length);
          },
      .write = [&bridge](std::string_view bytes) { return bridge.write(bytes); },
      .finish = [&bridge] { return bridge.finish(); },
      .head = [&bridge] { return bridge.head(); },
      .read = [&bridge](std::span<char> buffer) { return bridge.read(buffer); },
  };
}

Wire::Wire(RepositoryUrl url, GitCredential credential, WireCalls calls, std::stop_token stop,
           WireLimits limits)
    : url_(std::move(url)),
      base_(url_.http),
      credential_(std::move(credential)),
      calls_(std::move(calls)),
      stop_(std::move(stop)),
      limits_(limits) {}

http::Request Wire::request_for(std::string method, const std::string& target) const {
  http::Request request{.method = std::move(method), .target = target};
  // Some hosts serve Git only to clients whose name has this prefix.
  request.headers.add("User-Agent", "git/2.39 (gitops-runtime)");
  if (!credential_.empty()) {
    std::string pair = credential_.username + ":";
    pair += credential_.password.reveal();
    request.headers.add("Authorization", "Basic " + base64_encode(pair));
  }
  return request;
}

std::string Wire::without_credential(std::string text) const {
  const auto password = credential_.password.reveal();
  const std::string pair = credential_.username + ":" + std::string(password);
  return without(without(std::move(text), password), base64_encode(pair));
}

std::string Wire::quoted(std::string_view text, std::size_t limit) const {
  // Truncated last, so that no part of a secret remains.
  return printable(without_credential(std::string(text)), limit);
}

std::optional<Error> Wire::take_error() {
  auto error = std::exchange(error_, std::nullopt);
  if (error) error->message = quoted(error->message);
  return error;
}

// Returns the text of an error's body as one line: plain text, or the message of a JSON object.
// HTML pages are left out.
std::string Wire::words_of(const http::Response& answer) {
  const auto type = http::media_type(answer.headers);
  const bool is_text = http::equal_ignoring_case(type, "text/plain");
  const bool is_json = http::equal_ignoring_case(type, "application/json");
  if (!is_text && !is_json) return {};
  std::string body;
  std::array<char, 4UL * 1024> part{};
  while (body.size() < kMaxErrorBody) {
    const auto size = calls_.read(part);
    if (!size || *size == 0) break;
    body.append(part.data(), *size);
  }
  ServerWords words;
  words.add(is_json ? message_in(body) : body);
  return quoted(words.text(), kMaxQuotedBody);
}

Error Wire::refusal(const http::Response& answer) {
  const std::string host = base_.host_header();
  Error error{.code = error_code_of_status(answer.status),
              .message = host + " answered " + std::to_string(answer.status),
              .http_status = answer.status};
  if (answer.status == 401) {
    error.message =
        credential_.empty() ? host + " asks for a credential" : host + " refuses the credential";
  } else if (answer.status == 403) {
    error.message = host + " forbids access to " + url_.name;
  } else if (answer.status == 404) {
    error.message = host + " has no repository " + url_.name + ", or does not show it";
  } else if (answer.status == 413) {
    error.message = host + " takes no request of this size";
  } else if (is_redirect(answer.status)) {
    error.message = host + " redirects a request that must not be";
  }
  if (const auto words = words_of(answer); !words.empty()) {
    error.message += "; it says: \"" + words + "\"";
  }
  if (const auto after = answer.headers.find("Retry-After")) {
    error.retry_after = parse_retry_after(*after, wall_now());
  }
  return error;
}

Result<void> Wire::check_head(const http::Response& answer, Service service) {
  if (answer.status != 200) return std::unexpected(refusal(answer));
  const std::string host = base_.host_header();
  std::string expected = "application/x-" + std::string(name_of(service));
  expected += is_list(service) ? "-advertisement" : "-result";
  if (!http::equal_ignoring_case(http::media_type(answer.headers), expected)) {
    return std::unexpected(
        Error{.code = ErrorCode::protocol,
              .message = host + " does not speak Git's smart HTTP protocol for " + url_.name,
              .subcode = kNotGit});
  }
  return {};
}

Result<void> Wire::follow(const http::Response& answer, Service service) {
  const std::string host = base_.host_header();
  const auto location = answer.headers.find("Location");
  if (!location) return fail(ErrorCode::protocol, host + " redirects to nowhere");
  std::string target(*location);
  if (target.starts_with('/') && !target.starts_with("//")) target.insert(0, origin_of(base_));
  auto next = http::parse_url(target);
  if (!next || !next->userinfo.empty()) {
    return fail(ErrorCode::protocol, host + " redirects to an address that is no URL");
  }
  const bool same = origin_of(*next) == origin_of(base_);
  const bool to_tls = base_.scheme == "http" && base_.port == 80 && next->scheme == "https" &&
                      next->port == 443 && next->host == base_.host;
  if (!same && !to_tls) {
    return fail(ErrorCode::forbidden, host + " redirects to " + origin_of(*next) +
                                          "; redirects to another origin are not followed");
  }
  constexpr std::string_view kEnd = "/info/refs";
  if (!next->path.ends_with(kEnd) || next->query != "service=" + std::string(name_of(service))) {
    return fail(ErrorCode::protocol, host + " redirects to what is not a repository");
  }
  next->path.resize(next->path.size() - kEnd.size());
  next->query.clear();
  base_ = std::move(*next);
  return {};
}

Result<void> Wire::list(Service service) {
  service_ = service;
  posting_ = false;
  received_ = 0;
  list_.emplace(std::string(name_of(service)), branches_);
  fetched_.reset();
  passed_.clear();
  returned_ = 0;
  for (int hops = 0;; ++hops) {
    if (stopped()) return fail(ErrorCode::unavailable, "cancelled");
    const auto target = base_.path + "/info/refs?service=" + std::string(name_of(service));
    if (auto begun = calls_.begin(base_, request_for("GET", target), {}); !begun) {
      return begun;
    }
    auto answer = calls_.head();
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (!is_redirect(answer->status)) return check_head(*answer, service);
    if (hops == limits_.redirects) {
      return fail(ErrorCode::protocol, base_.host_header() + " redirects too often");
    }
    if (auto followed = follow(*answer, service); !followed) return followed;
  }
}

// Returns the body of a successful response by protocol version 2; empty when there is none.
std::string Wire::whole_answer(http::Request request) {
  constexpr std::size_t kMax = 64UL * 1024;
  request.headers.add("Git-Protocol", "version=2");
  if (stopped() || !calls_.begin(base_, std::move(request), {})) return {};
  const auto answer = calls_.head();
  if (!answer || answer->status != 200) return {};
  std::string body;
  std::array<char, 4UL * 1024> part{};
  while (true) {
    const auto size = calls_.read(part);
    if (!size || body.size() > kMax) return {};
    if (*size == 0) return body;
    body.append(part.data(), *size);
  }
}

Result<bool> Wire::has(const std::string& ref) {
  const std::string tag = "refs/tags/" + ref;
  show(ref.empty() ? std::vector<std::string>() : std::vector{ref, tag});
  if (auto listed = list(Service::list_for_fetch); !listed) {
    return std::unexpected(std::move(listed.error()));
  }
  std::array<char, 16UL * 1024> part{};
  while (!list_->complete() || returned_ < passed_.size()) {
    const auto size = read(part);
    if (!size) return std::unexpected(size.error());
    if (*size == 0) break;
  }
  return ref.empty() || list_->has("refs/heads/" + ref) || list_->has(tag);
}

std::string Wire::branch_of_head() {
  const std::string service(name_of(Service::list_for_fetch));
  list_.reset();
  const auto offered =
      whole_answer(request_for("GET", base_.path + "/info/refs?service=" + service));
  if (!announces_unborn_head(offered)) return {};
  auto request = request_for("POST", base_.path + "/" + service);
  request.headers.add("Content-Type", "application/x-" + service + "-request");
  request.headers.add("Accept", "application/x-" + service + "-result");
  request.body = head_request();
  return app_proxy::branch_of_head(whole_answer(std::move(request)));
}

void Wire::start_post(Service service) {
  service_ = service;
  posting_ = true;
  received_ = 0;
  body_.clear();
  spooled_.reset();
  list_.reset();
  fetched_.reset();
  push_report_ = {};
  if (service == Service::fetch) fetched_.emplace(limits_.unpacked);
}

Result<void> Wire::begin_post() {
  const std::string service(name_of(service_));
  auto request = request_for("POST", base_.path + "/" + service);
  request.headers.add("Content-Type", "application/x-" + service + "-request");
  request.headers.add("Accept", "application/x-" + service + "-result");
  if (service_ == Service::push) push_began_ = true;
  const auto spooled = std::exchange(spooled_, std::nullopt);
  if (!spooled) {
    request.body = std::exchange(body_, {});
    return calls_.begin(base_, std::move(request), {});
  }
  if (auto begun = calls_.begin(base_, std::move(request), spooled->size()); !begun) return begun;
  const auto sent = spooled->each([this](std::string_view part) -> Result<void> {
    if (stopped()) return fail(ErrorCode::unavailable, "cancelled");
    return calls_.write(part);
  });
  if (!sent) return sent;
  return calls_.finish();
}

Result<void> Wire::write(std::string_view bytes) {
  if (stopped()) return fail(ErrorCode::unavailable, "cancelled");
  if (!spooled_) {
    body_ += bytes;
    if (body_.size() <= kMaxWhole) return {};
    if (spool_folder_.empty()) return fail(ErrorCode::too_large, "the request is too long");
    auto spool = Spool::in(spool_folder_);
    if (!spool) return std::unexpected(std::move(spool.error()));
    spooled_.emplace(std::move(*spool));
    const std::string first = std::exchange(body_, {});
    return spooled_->write(first);
  }
  return spooled_->write(bytes);
}

Result<std::size_t> Wire::read(std::span<char> buffer) {
  if (stopped()) return fail(ErrorCode::unavailable, "cancelled");
  if (posting_) {
    posting_ = false;
    if (auto sent = begin_post(); !sent) return std::unexpected(std::move(sent.error()));
    auto answer = calls_.head();
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (auto checked = check_head(*answer, service_); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
  }
  if (!list_) return read_checked(buffer);
  while (returned_ == passed_.size() && !list_->complete()) {
    passed_.clear();
    returned_ = 0;
    std::array<char, 16UL * 1024> received{};
    const auto size = read_checked(received);
    if (!size) return size;
    if (*size == 0)
      return fail(ErrorCode::protocol, base_.host_header() + " sends half a list of branches");
    if (auto fed = list_->feed({received.data(), *size}, passed_); !fed) {
      return std::unexpected(std::move(fed.error()));
    }
  }
  const auto size = std::min(passed_.size() - returned_, buffer.size());
  std::copy_n(passed_.begin() + static_cast<std::ptrdiff_t>(returned_), size, buffer.begin());
  returned_ += size;
  return size;
}

// Reads from the server's response, within its limits.
Result<std::size_t> Wire::read_checked(std::span<char> buffer) {
  auto size = calls_.read(buffer);
  if (!size) return size;
  received_ += *size;
  const std::size_t limit = is_list(service_)           ? limits_.advertisement
                            : service_ == Service::push ? limits_.report
                                                        : limits_.pack;
  if (received_ > limit) {
    return fail(ErrorCode::too_large, base_.host_header() + " sends more than " +
                                          std::to_string(limit) + " bytes for " + url_.name);
  }
  if (service_ == Service::push) push_report_.feed({buffer.data(), *size});
  if (fetched_) {
    if (auto fed = fetched_->feed({buffer.data(), *size}); !fed) {
      return std::unexpected(std::move(fed.error()));
    }
  }
  return size;
}

// Functions that libgit2 calls. Objects are created here and destroyed by their free functions.
namespace {

struct Subtransport : git_smart_subtransport {
  Wire* wire = nullptr;
};

struct Stream : git_smart_subtransport_stream {
  Wire* wire = nullptr;
};

// Runs `work` and passes its error to libgit2 and to the wire; returns -1 on an error.
template <class Work>
int guarded(Wire& wire, Work work) noexcept {
  Error error;
  try {
    Result<void> result = work();
    if (result) return 0;
    error = std::move(result.error());
  } catch (const std::exception& failure) {
    error = {.code = ErrorCode::internal, .message = failure.what()};
  }
  // The wire has the text of the error; libgit2 only needs to have one.
  ::git_error_set_str(GIT_ERROR_NET, "the transport failed");
  wire.note(std::move(error));
  return -1;
}

int stream_read(git_smart_subtransport_stream* base, char* buffer, std::size_t size,
                std::size_t* read) {
  Wire& wire = *static_cast<Stream*>(base)->wire;
  *read = 0;
  return guarded(wire, [&]() -> Result<void> {
    auto got = wire.read({buffer, size});
    if (!got) return std::unexpected(std::move(got.error()));
    *read = *got;
    return {};
  });
}

int stream_write(git_smart_subtransport_stream* base, const char* bytes, std::size_t size) {
  Wire& wire = *static_cast<Stream*>(base)->wire;
  return guarded(wire, [&] { return wire.write({bytes, size}); });
}

void stream_free(git_smart_subtransport_stream* base) {
  delete static_cast<Stream*>(base);
}

int subtransport_action(git_smart_subtransport_stream** out, git_smart_subtransport* base,
                        const char* /*url*/, git_smart_service_t action) {
  Wire& wire = *static_cast<Subtransport*>(base)->wire;
  return guarded(wire, [&]() -> Result<void> {
    switch (action) {
      case GIT_SERVICE_UPLOADPACK_LS:
        if (auto listed = wire.list(Service::list_for_fetch); !listed) return listed;
        break;
      case GIT_SERVICE_RECEIVEPACK_LS:
        if (auto listed = wire.list(Service::list_for_push); !listed) return listed;
        break;
      case GIT_SERVICE_UPLOADPACK:
        wire.start_post(Service::fetch);
        break;
      case GIT_SERVICE_RECEIVEPACK:
        wire.start_post(Service::push);
        break;
    }
    auto* stream = new Stream;
    stream->subtransport = base;
    stream->read = stream_read;
    stream->write = stream_write;
    stream->free = stream_free;
    stream->wire = &wire;
    *out = stream;
    return {};
  });
}

int subtransport_close(git_smart_subtransport* /*base*/) {
  return 0;
}

void subtransport_free(git_smart_subtransport* base) {
  delete static_cast<Subtransport*>(base);
}

int make_subtransport(git_smart_subtransport** out, git_transport* /*owner*/, void* wire) {
  auto* made = new (std::nothrow) Subtransport;
  if (made == nullptr) return -1;
  made->action = subtransport_action;
  made->close = subtransport_close;
  made->free = subtransport_free;
  made->wire = static_cast<Wire*>(wire);
  *out = made;
  return 0;
}

}  // namespace

int Wire::make_transport(git_transport** out, git_remote* owner, void* wire) {
  // Every request is complete in itself ("rpc"), as HTTP requires.
  git_smart_subtransport_definition definition{
      .callback = make_subtransport, .rpc = 1, .param = wire};
  return ::git_transport_smart(out, owner, &definition);
}

}  // namespace gitops::app_proxy

// Functions that libgit2 references in its own HTTP, TLS and SSH code. It is linked from its
// archive. With these definitions the linker leaves that code out, and with it mbedTLS, libssh2,
// Kerberos and an HTTP client without our proxies and certificate authorities. Every operation sets
// its transport; one without it fails. A newer libgit2 that needs another function does not link.
extern "C" {

static int no_transport() {
  ::git_error_set_str(GIT_ERROR_NET, "libgit2 has no transport of its own here");
  return -1;
}

int git_smart_subtransport_http(git_smart_subtransport** /*out*/, git_transport* /*owner*/,
                                void* /*param*/) {
  return no_transport();
}
int git_smart_subtransport_git(git_smart_subtransport** /*out*/, git_transport* /*owner*/,
                               void* /*param*/) {
  return no_transport();
}
int git_smart_subtransport_ssh(git_smart_subtransport** /*out*/, git_transport* /*owner*/,
                               void* /*param*/) {
  return no_transport();
}

// These functions are not in libgit2's headers. git_libgit2_init calls the first two; the others
// are options.
int git_mbedtls_stream_global_init() {
  return 0;
}
int git_transport_ssh_global_init() {
  return 0;
}
bool git_http__expect_continue = false;
int git_mbedtls__set_cert_location(const char* /*file*/, const char* /*path*/) {
  return no_transport();
}

}  // extern "C"
