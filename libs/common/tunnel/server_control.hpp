#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/tunnel/control_coder.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/message.hpp"

namespace gitops::tunnel {

// What the server of a client that speaks wire v2 needs besides.
struct ServerOpening {
  ClientHello hello;
  std::string random;  // ClientHello::kRandomSize unpredictable bytes
  std::string nonce;   // kSealNonceSize unpredictable bytes
};

// Appends the answer to a login that is refused; the stream is to be ended behind it. `opening`: null
// for v1.
void refuse_login(std::string& out, std::string_view version, std::string_view error,
                  const ServerOpening* opening = nullptr);

struct ServerControlOptions {
  std::string version = {};  // of this server
  // The shared token of frp; may be empty.
  Secret token = {};
  // Work connections that a client may ask to have waiting.
  std::int64_t max_pool = 5;
  // Proxies of a session; more are refused.
  std::size_t max_proxies = 16;
  // What a client of ours is told: sessions of one client that may offer the same proxies at a time
  // (0: one), and other servers ("host:port") that it should have sessions with.
  std::int64_t links = 0;
  std::vector<std::string> servers = {};
  // Sessions that it may have when those are nearly full, and work connections of one at a time; 0: it
  // is not told.
  std::int64_t max_links = 0;
  std::int64_t max_work_conns = 0;
  // Pings are events, to be answered; otherwise they are answered here.
  bool asks_for_pings = false;
  // The client speaks v2, and its hello is supported.
  std::optional<ServerOpening> opening = {};
};

// The server's side of a control stream behind an accepted Login, without the stream. Who may log in
// and offer what is its owner's decision; this class keeps to the protocol. Bytes and randomness come
// in; bytes to send and events come out.
class ServerControl {
 public:
  // Accepts the login: `run_id` names the session. `iv`: Aes128Cfb::kIvSize unpredictable bytes, for v1.
  ServerControl(ServerControlOptions options, const Login& login, std::string run_id,
                std::string_view iv);

  struct Event {
    enum class What : std::uint8_t {
      new_proxy,     // is to be answered
      proxy_closed,  // by the client, answered or not
      pinged,        // is to be answered
    };
    What what = What::new_proxy;
    NewProxy proxy = {};  // proxy_closed: only the name
    Ping ping = {};
  };
  // Takes the next bytes of the stream, which it decrypts in place, and appends what happened.
  void receive(std::span<char> bytes, std::vector<Event>& events);
  // Bytes to send; the caller removes them from the string.
  [[nodiscard]] std::string& output() { return output_; }

  // Answers a new_proxy; nothing when the client has closed it meanwhile.
  void accept_proxy(std::string_view name, std::string_view remote_addr);
  void refuse_proxy(std::string_view name, std::string_view error);
  // Answers a Ping. With an error, the client ends the session.
  void answer_ping(std::string_view error = {});
  // Asks for one more work connection.
  void want_work();

  // Why the session is over: protocol, too_large. From then on everything does nothing.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Work connections that are kept waiting for users.
  [[nodiscard]] std::int64_t pool_size() const { return pool_size_; }

 private:
  struct Proxy {
    NewProxy request;
    std::optional<std::string> remote_addr;  // once it runs
  };

  void take(Message message, std::vector<Event>& events);
  void take_proxy(NewProxy proxy, std::vector<Event>& events);
  void send(const Message& message);

  ServerControlOptions options_;
  std::string run_id_;
  std::int64_t pool_size_;
  std::optional<Error> failure_;
  std::map<std::string, Proxy, std::less<>> proxies_;
  Wire wire_;
  MessageReader reader_;
  std::string output_;
  ControlCoder coder_;
};

}  // namespace gitops::tunnel
