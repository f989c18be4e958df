#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/backoff.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "common/tunnel/control_coder.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/message.hpp"

namespace gitops::tunnel {

// Additional data that a client sends in wire v2.
struct ClientOpening {
  std::string transport;  // "wss", "websocket" or "tcp"
  bool tls = true;
  bool tcp_mux = true;
};

struct ClientControlOptions {
  // Login without privilege key and timestamp, which are computed from the token.
  Login login = {};
  // frp's shared token; may be empty.
  Secret token = {};
  // Proxies that the server is requested to offer.
  std::vector<NewProxy> proxies = {};
  // Requests the proxies only after offer(), since another session may still have them.
  bool hold_proxies = false;
  // frp's auth.additionalScopes, which both sides must set: Pings (HeartBeats) and the first
  // message of work streams (NewWorkConns) carry a privilege key.
  bool sign_pings = false;
  bool sign_work = false;
  // Selects wire v2, which frp's server supports since 0.69; older servers close the connection.
  std::optional<ClientOpening> opening = {};
  std::chrono::milliseconds login_timeout{10'000};
  // Interval of Pings, which keep gateways from closing an idle connection, and the time without a
  // Pong after which the session fails.
  std::chrono::milliseconds ping_interval{30'000};
  std::chrono::milliseconds pong_timeout{90'000};
  // Time without a response after which a NewProxy is sent again.
  std::chrono::milliseconds answer_timeout{20'000};
  // Backoff for a refused proxy, whose owner may be about to disconnect.
  Backoff::Options retry{.initial = std::chrono::seconds(2), .max = std::chrono::seconds(30)};
};

// Client side of a control stream, without I/O: logs in, registers proxies and keeps them
// registered, and ignores responses to no request. Takes bytes, time and randomness; returns bytes
// to send and events. Not thread-safe.
class ClientControl {
 public:
  // Unpredictable inputs.
  struct Randomness {
    std::string iv;  // Aes128Cfb::kIvSize bytes, for v1
    std::uint64_t seed = 0;
    std::string random = {};  // ClientHello::kRandomSize bytes, for v2
    std::string nonce = {};   // kSealNonceSize bytes, for v2
  };
  ClientControl(ClientControlOptions options, Randomness randomness, WallTime wall,
                Clock::time_point now);

  struct Event {
    enum class What : std::uint8_t {
      logged_in,      // text: the run id
      proxy_started,  // text: the address at which the server offers it
      proxy_refused,  // text: the server's reason
      work_wanted,    // the server asks for a work connection
    };
    What what = What::work_wanted;
    std::string proxy = {};
    std::string text = {};

    bool operator==(const Event&) const = default;
  };
  // Processes the next bytes of the stream, which it decrypts in place, and appends the resulting
  // events.
  void receive(std::span<char> bytes, Clock::time_point now, std::vector<Event>& events);
  // Bytes to send; the caller removes sent bytes from the string.
  [[nodiscard]] std::string& output() { return output_; }

  // Performs due actions. Call it at due() or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Requests the proxies that were held: immediately if logged in, otherwise after the login.
  void offer(Clock::time_point now);
  // Closes the proxies, so that the server sends them no new users, and requests none of them
  // again. Before the login it ends the session.
  void stop(Clock::time_point now);
  // Returns whether the server has acted on stop(), so that another session can have the proxies.
  [[nodiscard]] bool has_withdrawn() const {
    return phase_ == Phase::stopped && unanswered_pings_ == 0;
  }

  // The error that ended the session: `forbidden` when the server refused the login or a Ping,
  // timeout, protocol, too_large. All calls do nothing after it.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] bool is_logged_in() const { return phase_ == Phase::logged_in; }
  // Run id for work streams; empty before the login.
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Version of the server; empty before the login.
  [[nodiscard]] const std::string& server_version() const { return server_version_; }
  // Values of LoginResp; 1 and empty with frp's server.
  [[nodiscard]] std::int64_t links() const { return links_; }
  [[nodiscard]] const std::vector<std::string>& servers() const { return servers_; }
  // Maximum number of sessions that the server accepts when the links are nearly full; at least
  // links().
  [[nodiscard]] std::int64_t max_links() const { return max_links_; }
  // Maximum number of work connections that the server accepts at a time; 0 if unknown.
  [[nodiscard]] std::int64_t max_work_conns() const { return max_work_conns_; }
  [[nodiscard]] Wire wire() const { return options_.opening ? Wire::v2 : Wire::v1; }
  // Returns the first bytes of a work stream. The server responds in the same wire version.
  [[nodiscard]] Result<std::string> work_offer(Clock::time_point now) const;

  struct Proxy {
    enum class State : std::uint8_t {
      waiting,  // for the login, for offer(), or for the server's response
      running,
      refused,   // requested again later
      unusable,  // not requested again: its NewProxy is too long, or it was closed
    };
    NewProxy request;
    Backoff backoff;
    State state = State::waiting;
    std::string text = {};  // of the server's last response
    // Time at which a NewProxy is sent if no response comes before.
    Clock::time_point due = kNever;
  };
  [[nodiscard]] const std::vector<Proxy>& proxies() const { return proxies_; }

 private:
  enum class Phase : std::uint8_t { login, logged_in, stopped };

  void receive_opening(std::span<char> bytes, Clock::time_point now, std::vector<Event>& events);
  Result<void> take_hello(Frame frame);
  void take(Message message, Clock::time_point now, std::vector<Event>& events);
  void logged_in(LoginResp answer, Clock::time_point now, std::vector<Event>& events);
  void proxy_answered(NewProxyResp answer, Clock::time_point now, std::vector<Event>& events);
  void ask_for(Proxy& proxy, Clock::time_point now);
  void ping(Clock::time_point now);
  [[nodiscard]] std::int64_t timestamp(Clock::time_point now) const;
  Result<void> send(const Message& message);
  void fail_session(Error error);

  ClientControlOptions options_;
  Phase phase_ = Phase::login;
  std::optional<Error> failure_;
  std::string run_id_;
  std::string server_version_;
  std::int64_t links_ = 1;
  std::vector<std::string> servers_;
  std::int64_t max_links_ = 1;
  std::int64_t max_work_conns_ = 0;
  std::vector<Proxy> proxies_;
  FrameReader frames_;  // until the login, in v2
  ClientHello hello_;
  std::string nonce_;
  MessageReader reader_;
  std::optional<ControlCoder> coder_;  // in v2, once the server has said hello
  std::string output_;
  WallTime wall_;  // of login_sent_
  Clock::time_point login_sent_;
  std::size_t unanswered_pings_ = 0;
  Clock::time_point pinged_{};
  Clock::time_point ponged_{};
};

}  // namespace gitops::tunnel
