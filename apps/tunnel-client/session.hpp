#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/link.hpp"

namespace gitops::tunnel {

// What sessions count, over the life of the process.
struct Traffic {
  explicit Traffic(Metrics& metrics);
  Counter& connections;
  Counter& failed_connections;
  Counter& bytes_from_server;
  Counter& bytes_to_server;
  Gauge& open_connections;
};

// A session with the tunnel's server on one connection: the control stream, and the work connections
// that the server asks for, each relayed to a connection of its own to the upstream.
class Session {
 public:
  // Connects to the host that the tunnel leads to.
  using Connect = std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline)>;
  struct Options {
    ClientControlOptions control = {};
    yamux::SessionOptions link = {};
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds idle_timeout{3'600'000};  // of a work connection
  };

  // `server` is connected; `traffic` and `changed` outlive the session; `changed` is told when
  // carrying() changes. Options::link's role is set here.
  Session(const Executor& executor, std::unique_ptr<net::Channel> server, Options options,
          Connect connect, Traffic& traffic, Event& changed);

  // Serves until the session is over, and returns why: `forbidden` when the server refused the
  // login. Once.
  Task<Error> run();
  // Tells the server to send nobody else. The session goes on for those who are there.
  void stop();

  enum class State : std::uint8_t { logging_in, registering, serving, refused, stopping };
  [[nodiscard]] State state() const;
  // The server's reason, while a proxy is refused.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] const std::string& server_version() const { return control_.server_version(); }
  // What a new session gives as its own, so that the server replaces this one.
  [[nodiscard]] const std::string& run_id() const { return control_.run_id(); }
  // Connections that carry something at the moment.
  [[nodiscard]] std::size_t carrying() const { return carrying_; }

 private:
  Task<> keep_link();
  Task<> keep_control();
  Task<Error> converse();
  void handle(const ClientControl::Event& event);
  Task<> work();
  void warn(std::string_view what, const Error& error);
  Task<Result<void>> await_start(net::Channel& stream, net::Buffer& received);
  Task<Result<void>> carry(net::Channel& stream, net::Buffer& received);
  void end(Error error);

  Options options_;
  Connect connect_;
  Traffic& traffic_;
  Link link_;
  ClientControl control_;
  std::unique_ptr<net::Channel> control_stream_;
  std::optional<Error> ending_;
  std::size_t carrying_ = 0;
  bool is_stopping_ = false;
  RepeatFilter warnings_{std::chrono::minutes(1)};
  Event& changed_;
  TaskGroup tasks_;
};

std::string_view to_string(Session::State state);

}  // namespace gitops::tunnel
