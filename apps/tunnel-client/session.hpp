#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/link.hpp"
#include "common/tunnel/work_channel.hpp"

namespace gitops::tunnel_client {

// Metrics of a link's sessions, over the life of the process.
struct Traffic {
  Traffic(Metrics& metrics, const Metrics::Labels& link);
  Counter& requests;
  Counter& connections;
  Counter& failed_connections;
  Counter& bytes_from_server;
  Counter& bytes_to_server;
  Gauge& open_connections;
  Counter& sessions;
  Gauge& serving;
};

// Session with the tunnel server: the control stream, and the work connections that the server
// requests. Relays each work connection to its own connection to the upstream. Loop thread only.
class Session {
 public:
  // Connects to the upstream of a proxy.
  using Connect = std::function<Task<Result<std::unique_ptr<net::Channel>>>(
      const std::string& proxy, Deadline deadline)>;
  // Connects to the server.
  using Dial = std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline deadline)>;
  struct Options {
    tunnel::ClientControlOptions control = {};
    // The defaults detect a vanished server after 14 s.
    tunnel::yamux::SessionOptions link = {};
    // Dials each work connection for frp's tcpMux = false; yamux is then not used.
    Dial dial = {};
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds idle_timeout{3'600'000};  // of a work connection
    std::size_t max_work = 4'096;                       // work connections at a time
  };

  // `server` is connected; the session owns it. `traffic` and `changed` must outlive the session.
  // `changed` is set whenever a result of the functions below changes. The constructor sets the
  // role in Options::link.
  Session(const Executor& executor, std::unique_ptr<net::Channel> server, Options options,
          Connect connect, Traffic& traffic, Event& changed);

  // Serves until the session is over and returns the reason: `forbidden` when the server refused
  // the login. Call it once.
  Task<Error> run();
  // Registers the proxies that were held (ClientControlOptions::hold_proxies).
  void offer();
  // Asks the server to send no new users, and drains: the session serves its current users and ends
  // with the last of them. Idle connections that the server keeps for further requests are closed.
  void stop();
  // Returns whether the server has acted on stop().
  [[nodiscard]] bool has_withdrawn() const { return control_.has_withdrawn(); }
  // Ends the session immediately.
  void close(std::string why);
  // Returns whether the server drains the session: it accepts no further work connections (GoAway).
  [[nodiscard]] bool server_is_draining() const { return link_ && link_->peer_is_draining(); }

  // Returns whether the yamux session should be replaced before its stream ids run out.
  [[nodiscard]] bool is_worn_out() const { return link_ && link_->is_worn_out(); }
  // Returns whether three quarters of the work connections that both sides allow are in use, so
  // that another link is needed.
  [[nodiscard]] bool is_nearly_full() const;

  enum class State : std::uint8_t { logging_in, registering, serving, refused, stopping };
  [[nodiscard]] State state() const;
  // The server's reason while it refuses a proxy; otherwise empty.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] const tunnel::ClientControl& control() const { return control_; }
  // Run id of the session. A new session logs in with it, so that the server replaces this one.
  [[nodiscard]] const std::string& run_id() const { return control_.run_id(); }
  // Time at which the first proxy was registered.
  [[nodiscard]] std::optional<Clock::time_point> serving_since() const { return serving_since_; }
  // Number of work connections that carry a user.
  [[nodiscard]] std::size_t carrying() const { return carried_.size(); }

 private:
  class Carried;

  Task<> maintain_link();
  Task<> maintain_control();
  Task<Error> converse();
  void handle(const tunnel::ClientControl::Event& event);
  void send_now();
  Task<> drain();
  void close_idle();
  Task<Result<std::unique_ptr<net::Channel>>> open_stream();
  Task<> work();
  void warn(std::string_view what, const Error& error);
  // Returns the proxy's name.
  Task<Result<std::string>> await_start(net::Channel& stream, net::Buffer& received);
  [[nodiscard]] tunnel::WorkCoding coding_of(const std::string& proxy) const;
  Task<Result<void>> carry(const std::string& proxy, net::Channel& stream, net::Buffer& received);
  void end(Error error);

  Options options_;
  Connect connect_;
  Traffic& traffic_;
  std::optional<tunnel::Link> link_;  // null without yamux
  tunnel::ClientControl control_;
  std::unique_ptr<net::Channel> control_stream_;
  std::optional<Error> ending_;
  std::vector<Carried*> carried_;
  std::optional<Clock::time_point> serving_since_;
  bool is_writing_ = false;  // on the control stream
  bool is_stopping_ = false;
  RepeatFilter warnings_{std::chrono::minutes(1)};
  Event& changed_;
  TaskGroup tasks_;
};

std::string_view to_string(Session::State state);

}  // namespace gitops::tunnel_client
