#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/secret.hpp"
#include "common/http/client.hpp"
#include "common/tunnel/message.hpp"

// Who may log in and offer what.
namespace gitops::tunnel_server {

// The runtimes of a file: what they may offer, and the token that proves who they are. A line each:
//   PREFIX[,DOMAIN…] TOKEN
// TOKEN is the token itself or "sha256:" and the SHA-256 of it in hex. Empty lines and those that
// begin with '#' are left out. A runtime may stand on several lines, with a token each.
class RuntimeList {
 public:
  // Errors name the line and never its token.
  static Result<RuntimeList> parse(std::string_view text);

  // Whether the token is one of a runtime that may offer all of these: a subdomain, and domains of
  // its own. Compares in constant time. The error is for the client.
  [[nodiscard]] Result<void> admit(const tunnel::NewProxy& proxy) const;
  [[nodiscard]] std::size_t size() const { return runtimes_.size(); }

 private:
  struct Runtime {
    std::vector<std::string> names;  // in lower case
    std::string token_sum;           // SHA-256
  };
  std::vector<Runtime> runtimes_;
};

// What a plugin answers; docs/tunnel-server.md, "Plugin".
struct PluginAnswer {
  std::string content;  // that replaces what was asked about; empty: unchanged
};
// Reads it. Forbidden with the plugin's reason when it refuses; protocol when the answer says neither
// what holds nor that nothing changes.
Result<PluginAnswer> read_plugin_answer(std::string_view body);

// Decides about clients: by the token that frp's programs share, by the list of runtimes, and by an
// HTTP plugin as frp's server has them. What is configured must all agree. Loop thread only.
class Authorizer {
 public:
  struct Options {
    Secret token = {};
    std::string token_file = {};
    std::string runtimes_file = {};
    std::string plugin_url = {};
    net::TlsOptions plugin_tls = {};
    std::vector<std::string> plugin_operations = {"Login", "NewProxy"};
    std::chrono::milliseconds plugin_timeout{5'000};
  };
  // The client that a question is about.
  struct Subject {
    std::string address;  // "10.1.2.3:4567"
    std::string user;
    tunnel::Metadata metas;  // of its Login
    std::string run_id;
  };

  Authorizer(const Executor& executor, net::Resolver& resolver, Options options);

  // Reads the files; an error names the file.
  Result<void> check();
  // The shared token now; the key of control streams.
  [[nodiscard]] Secret token() { return token_.current(); }

  // What holds of the client's message, or the error that it is told.
  Task<Result<tunnel::Login>> admit_login(Subject subject, tunnel::Login login);
  Task<Result<tunnel::NewProxy>> admit_proxy(Subject subject, tunnel::NewProxy proxy);
  Task<Result<void>> admit_ping(Subject subject, tunnel::Ping ping);
  Task<Result<void>> admit_work(Subject subject, tunnel::NewWorkConn work);
  // Tells the plugin; its answer does not matter.
  Task<> report_closed(Subject subject, std::string proxy);

  // Reads the list of runtimes again when it has changed; true when another one holds now.
  bool refresh();
  // Whether the list of runtimes allows this proxy now; without one, all are allowed.
  [[nodiscard]] Result<void> still_admits(const tunnel::NewProxy& proxy) const;
  // Somebody says of each proxy whose it is, so that its client may take a host over.
  [[nodiscard]] bool confirms_owners() const;
  [[nodiscard]] bool asks_about(std::string_view operation) const;

 private:
  Result<void> read_runtimes();
  // The content that holds, as JSON.
  Task<Result<std::string>> ask_plugin(std::string_view operation, const Subject& subject,
                                       std::string content);

  Options options_;
  Credential token_;
  std::optional<RuntimeList> runtimes_;
  std::string runtimes_fingerprint_;
  Clock::time_point next_look_{};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  std::optional<http::Url> plugin_;
  http::Client client_;
};

}  // namespace gitops::tunnel_server
