#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"
#include "common/net/resolve.hpp"
#include "daemons/control_plane_process.hpp"
#include "narrator.hpp"
#include "support/process.hpp"

namespace gitops::demo {

// The control plane of the scene with its first administrator, Dana, as whom the scene asks it.
// Functions throw Failure. Loop thread, which is the main thread.
class Plane {
 public:
  static constexpr const char* kUser = "dana";

  // `database`: as of test::ControlPlaneProcess. Starts nothing yet.
  Plane(const Executor& executor, asio::thread_pool& pool, std::string database);

  // Starts the program with an empty database, logs in as the first administrator, and makes an API
  // key, as a user does.
  Task<> start();
  // Ends the program with SIGKILL.
  void kill();
  // Starts it again with its database, on the same port.
  Task<> start_again();

  // Sends a GraphQL document with Dana's key and returns the value of its first field.
  Task<nlohmann::json> ask(std::string document,
                           nlohmann::json variables = nlohmann::json::object());

  // The events that came since the program was started.
  struct Events {
    std::size_t stored = 0;
    std::size_t repeated = 0;  // were stored already, or are older than what is stored
    std::size_t refused = 0;   // malformed, or impossible to store
  };
  Task<Events> events();
  // Returns when no event has come for a while.
  Task<> wait_until_quiet();

  [[nodiscard]] std::string url() const { return program_.url(); }
  // Whether the program was built with the console.
  [[nodiscard]] bool has_console() const { return has_console_; }
  // The address of a page of the console, such as "/runtimes".
  [[nodiscard]] std::string page(const std::string& path) const { return url() + path; }
  [[nodiscard]] const std::string& password() const { return password_; }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& account_id() const { return account_id_; }
  // Where tunnel servers ask whether a client may offer a host.
  [[nodiscard]] std::string tunnel_plugin() const;
  [[nodiscard]] std::string log() const { return is_started_ ? program_.log() : std::string(); }
  [[nodiscard]] bool is_started() const { return is_started_; }
  test::ControlPlaneProcess& program() { return program_; }
  http::Client& client() { return client_; }

 private:
  Task<http::Response> call(std::uint16_t port, http::Request request);
  Task<> log_in();

  asio::thread_pool& pool_;
  Metrics metrics_;
  net::Resolver resolver_;
  http::Client client_;
  test::TempDir folder_;
  test::ControlPlaneProcess program_;
  bool is_started_ = false;
  bool has_console_ = false;
  std::string password_;
  std::string key_;
  std::string account_id_;
};

}  // namespace gitops::demo
