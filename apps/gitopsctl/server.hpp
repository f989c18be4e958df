#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "common/http/sse.hpp"
#include "gitopsctl/config.hpp"
#include "gitopsctl/contexts.hpp"

namespace gitops::ctl {

// Settings that say which control plane a command asks.
struct ServerSettings {
  std::string context;  // empty: by `direct`, else the current one
  ControlPlaneSettings direct;
  void add_to(ConfigReader& reader);
};

// Finds the control plane: --context > --control-plane-url and CODEFRESH_URL > the current context. Reads the token of
// the context's file. Error: kUsage when none is known.
Result<Context> find_context(const ServerSettings& settings, const cli::Environment& environment);

// A control plane and the app-proxies of its runtimes, with the credential of one user. Every request has the deadline
// `request_deadline()`. Errors as failure.hpp tells them. Loop thread only.
class Server {
 public:
  Server(const cli::LoopContext& loop, const cli::Environment& environment, Context context,
         std::chrono::milliseconds request_timeout);

  // Sends a GraphQL document to the control plane, and returns its `data`.
  Task<Result<nlohmann::json>> ask(std::string_view document, nlohmann::json variables);
  // Sends a REST request to the control plane. An empty body is not sent.
  Task<Result<nlohmann::json>> call(std::string method, std::string_view path,
                                    std::string body = {});
  // The same for a response that is text: a new key.
  Task<Result<std::string>> call_for_text(std::string method, std::string_view path,
                                          std::string body);
  // Sends a GraphQL document to the app-proxy of a runtime, whose address the control plane tells. The error has the
  // subcode kNotSent when it does not.
  Task<Result<nlohmann::json>> ask_runtime(const std::string& runtime, std::string_view document,
                                           nlohmann::json variables);

  // Sends a REST request to it; `path` begins behind /app-proxy.
  Task<Result<nlohmann::json>> call_runtime(const std::string& runtime, std::string method,
                                            std::string_view path, std::string body);
  // Returns the address of the app-proxy of a runtime. Errors: not_found; unsupported, when it has none or one that
  // the key must not be sent to.
  Task<Result<http::Url>> runtime_url(const std::string& runtime);

  // Takes an event, and returns whether to go on.
  using OnEvent = std::function<bool(const http::ServerSentEvent&)>;
  // Follows server-sent events of the control plane, until `on_event` ends it, the server does, or the deadline of the
  // command comes. Begins behind the event `last_id`; empty: with what comes.
  Task<Result<void>> follow(std::string_view path, OnEvent on_event, std::string last_id = {});
  // The same of the app-proxy of a runtime; `path` begins behind /app-proxy.
  Task<Result<void>> follow_runtime(const std::string& runtime, std::string_view path,
                                    OnEvent on_event);

  [[nodiscard]] const Context& context() const { return context_; }
  // Whether the deadline of the command comes within this time.
  [[nodiscard]] bool ends_within(Clock::duration time) const {
    return loop_.deadline != kNever && Clock::now() + time >= loop_.deadline;
  }

 private:
  [[nodiscard]] Deadline request_deadline() const;
  [[nodiscard]] http::Request request(std::string method, std::string target) const;
  Task<Result<http::Response>> send(const http::Url& url, std::string method, std::string_view path,
                                    std::string body);
  Task<Result<nlohmann::json>> ask_at(const http::Url& url, std::string_view path,
                                      std::string_view document, nlohmann::json variables);
  Task<Result<void>> follow_at(http::Url url, std::string target, OnEvent on_event,
                               std::string last_id = {});

  const cli::LoopContext& loop_;
  Context context_;
  http::Url url_;
  std::string trace_;  // traceparent of all requests of the command
  std::chrono::milliseconds request_timeout_;
  net::Resolver resolver_;
  http::Client client_;
};

}  // namespace gitops::ctl
