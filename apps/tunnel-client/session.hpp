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

// What the sessions of a link count, over the life of the process.
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

// A session with the tunnel's server: the control stream, and the work connections that the server
// asks for, each relayed to a connection of its own to the upstream.
class Session {
 public:
  // Connects to the host that a proxy leads to.
  using Connect = std::function<Task<Result<std::unique_ptr<net::Channel>>>(
      const std::string& proxy, Deadline deadline)>;
  // Connects to the server.
  using Dial = std::function<Task<Result<std::unique_ptr<net::Channel>>>(Deadline deadline)>;
  struct Options {
    tunnel::ClientControlOptions control = {};
    // A server that vanished is noticed after 14 s.
    tunnel::yamux::SessionOptions link = {};
    // frp's tcpMux = false: each work connection is dialled by this, and yamux is not used.
    Dial dial = {};
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds idle_timeout{3'600'000};  // of a work connection
    std::size_t max_work = 4'096;                       // work connections at a time
  };

  // `server` is connected; `traffic` and `changed` outlive the session; `changed` is told of
  // everything that the functions below tell. Options::link's role is set here.
  Session(const Executor& executor, std::unique_ptr<net::Channel> server, Options options,
          Connect connect, Traffic& traffic, Event& changed);

  // Serves until the session is over, and returns why: `forbidden` when the server refused the
  // login. Once.
  Task<Error> run();
  // Asks for proxies that were held (ClientControlOptions::hold_proxies).
  void offer();
  // Tells the server to send nobody else. The session goes on for those who are there, and ends with
  // the last of them. Connections that the server keeps for further requests are then ended.
  void stop();
  // The server has taken notice of stop().
  [[nodiscard]] bool has_withdrawn() const { return control_.has_withdrawn(); }
  // Ends the session now.
  void close(std::string why);
  // The server wants the session to end soon: it takes no further work connections (GoAway).
  [[nodiscard]] bool server_is_draining() const { return link_ && link_->peer_is_draining(); }

  // Its yamux session is to be replaced before it can open no further stream.
  [[nodiscard]] bool is_worn_out() const { return link_ && link_->is_worn_out(); }
  // Three quarters of the work connections that both sides allow are in use: another link is needed.
  [[nodiscard]] bool is_nearly_full() const;

  enum class State : std::uint8_t { logging_in, registering, serving, refused, stopping };
  [[nodiscard]] State state() const;
  // The server's reason, while a proxy is refused.
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] const tunnel::ClientControl& control() const { return control_; }
  // What a new session gives as its own, so that the server replaces this one.
  [[nodiscard]] const std::string& run_id() const { return control_.run_id(); }
  // When a proxy began to run.
  [[nodiscard]] std::optional<Clock::time_point> serving_since() const { return serving_since_; }
  // Connections that carry something at the moment.
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
  // The proxy's name.
  Task<Result<std::string>> await_start(net::Channel& stream, net::Buffer& received);
  [[nodiscard]] tunnel::WorkCoding coding_of(const std::string& proxy) const;
  Task<Result<void>> carry(const std::string& proxy, net::Channel& stream, net::Buffer& received);
  void end(Error error);

  Options options_;
  Connect connect_;
  Traffic& traffic_;
  std::optional<tunnel::Link> link_;  // none without yamux
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
