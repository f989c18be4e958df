#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"
#include "common/tunnel/message.hpp"

// Authorization of clients: their logins and the hosts that they offer.
namespace gitops::tunnel_server {

// Runtimes of a file: the hosts that each may offer, and its tokens. One line for each:
//   PREFIX[,DOMAIN…] TOKEN
// TOKEN is the token itself or "sha256:" and its SHA-256 in hex. Empty lines and lines that begin
// with '#' are skipped. A runtime with several tokens has several lines.
class RuntimeList {
 public:
  // Parses the file's text. Errors name the line and never contain its token.
  static Result<RuntimeList> parse(std::string_view text);

  // Checks that the token belongs to a runtime that may offer the proxy's subdomain and all its
  // domains. Compares in constant time. The error's message is for the client.
  [[nodiscard]] Result<void> admit(const tunnel::NewProxy& proxy) const;
  [[nodiscard]] std::size_t size() const { return runtimes_.size(); }

 private:
  struct Runtime {
    std::vector<std::string> names;  // in lower case
    std::string token_sum;           // SHA-256
  };
  std::vector<Runtime> runtimes_;
};

// Response of a plugin; docs/reference/tunnel/server.md, "Plugin".
struct PluginAnswer {
  std::string content;  // replaces the request's content; empty: unchanged
};
// Parses a plugin's response. Errors: forbidden, with the plugin's reason, when it refuses;
// protocol when the response neither contains content nor states that it is unchanged.
Result<PluginAnswer> read_plugin_answer(std::string_view body);

// Authorizes clients by frp's shared token, by the list of runtimes, and by an HTTP plugin in the
// format of frp's server. All configured checks must agree. Loop thread only.
class Authorizer {
 public:
  struct Options {
    Secret token = {};
    std::string token_file = {};
    std::string runtimes_file = {};
    std::optional<http::Url> plugin_url = {};
    net::TlsOptions plugin_tls = {};
    std::vector<std::string> plugin_operations = {"Login", "NewProxy"};
    std::chrono::milliseconds plugin_timeout{5'000};
  };
  // The client that a plugin request is about.
  struct Subject {
    std::string address;  // "10.1.2.3:4567"
    std::string user;
    tunnel::Metadata metas;  // of its Login
    std::string run_id;
  };

  // The resolver must outlive the authorizer.
  Authorizer(const Executor& executor, net::Resolver& resolver, Options options);

  // Reads the files. The error names the file.
  Result<void> check();
  // The current shared token; the key of control streams.
  [[nodiscard]] Secret token() { return token_.current(); }

  // Authorize a message of a client. They return the message to use, which the plugin may have
  // changed, or the error for the client.
  Task<Result<tunnel::Login>> admit_login(Subject subject, tunnel::Login login);
  Task<Result<tunnel::NewProxy>> admit_proxy(Subject subject, tunnel::NewProxy proxy);
  Task<Result<void>> admit_ping(Subject subject, tunnel::Ping ping);
  Task<Result<void>> admit_work(Subject subject, tunnel::NewWorkConn work);
  // Reports a closed proxy to the plugin. The plugin's response is ignored.
  Task<> report_closed(Subject subject, std::string proxy);

  // Reloads the list of runtimes when its file has changed.
  void refresh();
  // Number of lists of runtimes that have been in force. A request of any client may have reloaded
  // the list.
  [[nodiscard]] std::uint64_t lists() const { return lists_; }
  // Checks that the current list of runtimes allows this proxy. Without a list, all proxies are
  // allowed.
  [[nodiscard]] Result<void> still_admits(const tunnel::NewProxy& proxy) const;
  // Returns whether a list or a plugin confirms the owner of each proxy, so that a client may take
  // over a host.
  [[nodiscard]] bool confirms_owners() const;
  [[nodiscard]] bool asks_about(std::string_view operation) const;

 private:
  Result<void> read_runtimes();
  // Returns the content to use, as JSON.
  Task<Result<std::string>> ask_plugin(std::string_view operation, const Subject& subject,
                                       std::string content);

  Options options_;
  Credential token_;
  std::optional<RuntimeList> runtimes_;
  std::string runtimes_fingerprint_;
  std::uint64_t lists_ = 0;
  Clock::time_point next_look_{};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  http::Client client_;
};

}  // namespace gitops::tunnel_server
