#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/answer_check.hpp"
#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/http_bridge.hpp"
#include "app-proxy/git/spool.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

struct git_remote;     // of libgit2
struct git_transport;  // of libgit2

namespace gitops::app_proxy {

// Credential for HTTP Basic. Providers with tokens take the token as the password.
struct GitCredential {
  std::string username = {};
  Secret password = {};
  [[nodiscard]] bool empty() const { return username.empty() && password.empty(); }
  bool operator==(const GitCredential&) const = default;
};

// Limits for the responses of an untrusted server.
struct WireLimits {
  std::size_t advertisement = 32 * 1024 * 1024;            // list of branches and tags, bytes
  std::size_t pack = std::size_t{4} * 1024 * 1024 * 1024;  // response to a fetch, bytes
  std::size_t report = 1024 * 1024;                        // response to a push, bytes
  PackLimits unpacked = {};
  int redirects = 5;
};

// Requests of one operation: through an HttpBridge, or prepared responses in a fuzz target.
struct WireCalls {
  // Starts a request. With a length, the body follows by write() and finish().
  std::function<Result<void>(http::Url, http::Request, std::optional<std::uint64_t> length)> begin;
  std::function<Result<void>(std::string_view)> write;
  std::function<Result<void>()> finish;
  std::function<Result<http::Response>()> head;
  std::function<Result<std::size_t>(std::span<char>)> read;

  // Makes calls that use `bridge`, which outlives them.
  static WireCalls over(HttpBridge& bridge);
};

// Git's smart HTTP protocol, version 0 (gitprotocol-http(5)), under libgit2: a subtransport that
// uses our HTTP client. Serves one remote at a time, on one thread, and outlives it.
//
// The credential goes to the origin of the URL only. A redirect of the first request is followed
// within that origin, or from http to https on the same host, as GitHub sends for a renamed
// repository; every other redirect is an error. The server's responses are limited in size, must
// have the content types of the protocol, and pass through answer_check before libgit2 reads them.
// Errors quote little of them, and never the credential.
//
// Every request has a Content-Length, since some servers require one. A body above 1 MiB is
// spooled.
class Wire {
 public:
  Wire(RepositoryUrl url, GitCredential credential, WireCalls calls, std::stop_token stop = {},
       WireLimits limits = {});
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // The git_transport_cb for libgit2; `wire` is a Wire*.
  static int make_transport(git_transport** out, git_remote* owner, void* wire);

  [[nodiscard]] const RepositoryUrl& url() const { return url_; }
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }
  // Returns the reason of the last failure and clears it; nullopt when the failure came from
  // libgit2.
  std::optional<Error> take_error();
  // Makes a text with parts from the server safe to show: valid UTF-8 without control characters
  // and without the credential, at most `limit` bytes.
  [[nodiscard]] std::string quoted(std::string_view text, std::size_t limit = 400) const;
  // Sets the folder for long requests until they are sent, on the disk of the clones. Without a
  // folder, a long request is an error.
  void spool_in(std::filesystem::path folder) { spool_folder_ = std::move(folder); }
  // Sets the branches that libgit2 sees in the next lists, besides the default one.
  void show(std::vector<std::string> branches) { branches_ = std::move(branches); }
  // True when the last list had branches, shown or not. Valid until the next request.
  [[nodiscard]] bool has_branches() const { return list_ && list_->has_branches(); }
  // Requests only the list, and checks whether the repository has a branch or a tag of this name.
  // With an empty name: true when the repository exists.
  Result<bool> has(const std::string& ref);
  // Returns the branch that HEAD names, also in a repository without branches; empty when the
  // server does not report it. Uses protocol version 2, after a list.
  std::string branch_of_head();
  // True when bytes of a push may have been sent. Reset by expect_push().
  [[nodiscard]] bool push_began() const { return push_began_; }
  // The server's response to the push so far.
  [[nodiscard]] const PushReport& push_report() const { return push_report_; }
  void expect_push() {
    push_began_ = false;
    push_report_ = {};
  }

  // Requests below libgit2.
  enum class Service : std::uint8_t { list_for_fetch, fetch, list_for_push, push };
  // Sends the GET for the list of references, and follows redirects. read() returns the list.
  Result<void> list(Service service);
  // Starts a POST. write() adds the body, and the first read() ends it.
  void start_post(Service service);
  Result<void> write(std::string_view bytes);
  Result<std::size_t> read(std::span<char> buffer);
  // Stores the reason of a failure for take_error().
  void note(Error error) { error_ = std::move(error); }

 private:
  [[nodiscard]] http::Request request_for(std::string method, const std::string& target) const;
  Result<void> follow(const http::Response& answer, Service service);
  [[nodiscard]] std::string without_credential(std::string text) const;
  Result<void> begin_post();
  std::string whole_answer(http::Request request);
  Result<std::size_t> read_checked(std::span<char> buffer);
  Result<void> check_head(const http::Response& answer, Service service);
  [[nodiscard]] Error refusal(const http::Response& answer);
  std::string words_of(const http::Response& answer);

  const RepositoryUrl url_;
  http::Url base_;  // url_, or the target of its redirect
  const GitCredential credential_;
  const WireCalls calls_;
  const std::stop_token stop_;
  const WireLimits limits_;
  std::optional<Error> error_;
  bool push_began_ = false;

  // The present request.
  Service service_ = Service::list_for_fetch;
  std::string body_;              // of a POST, while it is short
  std::optional<Spool> spooled_;  // the body, once it is long
  bool posting_ = false;          // a POST that was not sent yet
  std::size_t received_ = 0;
  std::vector<std::string> branches_;
  std::optional<ReferenceList> list_;
  std::optional<FetchAnswer> fetched_;
  PushReport push_report_;
  std::string passed_;  // of the list, not returned yet
  std::size_t returned_ = 0;
  std::filesystem::path spool_folder_;
};

}  // namespace gitops::app_proxy
