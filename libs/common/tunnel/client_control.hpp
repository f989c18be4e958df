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

// What a client that speaks wire v2 tells besides.
struct ClientOpening {
  std::string transport;  // "wss", "websocket" or "tcp"
  bool tls = true;
  bool tcp_mux = true;
};

struct ClientControlOptions {
  // Without privilege key and timestamp, which are made from the token.
  Login login = {};
  // The shared token of frp; may be empty.
  Secret token = {};
  // What the server is asked to offer.
  std::vector<NewProxy> proxies = {};
  // Asks for them only after offer(): another session may still have them.
  bool hold_proxies = false;
  // frp's auth.additionalScopes, which both sides must have: Pings (HeartBeats) and the first message
  // of work streams (NewWorkConns) carry a privilege key.
  bool sign_pings = false;
  bool sign_work = false;
  // Speak v2, of frp's server since 0.69; older ones close the connection.
  std::optional<ClientOpening> opening = {};
  std::chrono::milliseconds login_timeout{10'000};
  // A Ping is sent every ping_interval, which keeps gateways from closing an idle connection. The
  // session fails when no Pong comes for pong_timeout.
  std::chrono::milliseconds ping_interval{30'000};
  std::chrono::milliseconds pong_timeout{90'000};
  // A NewProxy without an answer is sent again.
  std::chrono::milliseconds answer_timeout{20'000};
  // A refused proxy is asked for again: its owner may just be leaving.
  Backoff::Options retry{.initial = std::chrono::seconds(2), .max = std::chrono::seconds(30)};
};

// The client's side of a control stream, without the stream: logs in, registers proxies and keeps
// them registered, answers nothing that it was not asked. Bytes, time and randomness come in; bytes
// to send and events come out.
class ClientControl {
 public:
  // What cannot be predicted.
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
      proxy_started,  // text: where the server offers it
      proxy_refused,  // text: the server's reason
      work_wanted,    // the server asks for a work connection
    };
    What what = What::work_wanted;
    std::string proxy = {};
    std::string text = {};

    bool operator==(const Event&) const = default;
  };
  // Takes the next bytes of the stream, which it decrypts in place, and appends what happened.
  void receive(std::span<char> bytes, Clock::time_point now, std::vector<Event>& events);
  // Bytes to send; the caller removes them from the string.
  [[nodiscard]] std::string& output() { return output_; }

  // Does what is due. Call it at due() or later.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;

  // Asks for proxies that were held; at once when logged in.
  void offer(Clock::time_point now);
  // Closes the proxies, so that the server sends nobody to them any more. They are not asked for
  // again. Before the login it ends the session.
  void stop(Clock::time_point now);
  // The server has taken notice of stop(), so that another session can have the proxies.
  [[nodiscard]] bool has_withdrawn() const {
    return phase_ == Phase::stopped && unanswered_pings_ == 0;
  }

  // Why the session is over: `forbidden` when the server refused the login or a Ping, timeout,
  // protocol, too_large. From then on everything does nothing.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] bool is_logged_in() const { return phase_ == Phase::logged_in; }
  // To be sent on work streams. Empty before the login.
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Empty before the login.
  [[nodiscard]] const std::string& server_version() const { return server_version_; }
  // What LoginResp tells of them; 1 and none for frp's server.
  [[nodiscard]] std::int64_t links() const { return links_; }
  [[nodiscard]] const std::vector<std::string>& servers() const { return servers_; }
  // Sessions that the server takes when those are nearly full; at least links().
  [[nodiscard]] std::int64_t max_links() const { return max_links_; }
  // Work connections that the server takes at a time; 0 when it does not tell.
  [[nodiscard]] std::int64_t max_work_conns() const { return max_work_conns_; }
  [[nodiscard]] Wire wire() const { return options_.opening ? Wire::v2 : Wire::v1; }
  // The first bytes of a work stream. What comes back is of the same wire.
  [[nodiscard]] Result<std::string> work_offer(Clock::time_point now) const;

  struct Proxy {
    enum class State : std::uint8_t {
      waiting,  // for the login, for offer(), or for the server's answer
      running,
      refused,   // asked for again later
      unusable,  // not asked for again: its NewProxy is too long, or it was closed
    };
    NewProxy request;
    Backoff backoff;
    State state = State::waiting;
    std::string text = {};  // of the server's last answer
    // When a NewProxy is sent if nothing comes before.
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
