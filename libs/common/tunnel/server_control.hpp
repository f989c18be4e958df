#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Additional data of the server for a client that uses wire v2.
struct ServerOpening {
  ClientHello hello;
  std::string random;  // ClientHello::kRandomSize unpredictable bytes
  std::string nonce;   // kSealNonceSize unpredictable bytes
};

// Appends the response that refuses a login; the caller then ends the stream. `opening`: null for
// v1.
void refuse_login(std::string& out, std::string_view version, std::string_view error,
                  const ServerOpening* opening = nullptr);

struct ServerControlOptions {
  std::string version = {};  // of this server
  // frp's shared token; may be empty.
  Secret token = {};
  // Maximum number of waiting work connections that a client may request.
  std::int64_t max_pool = 5;
  // Maximum number of proxies of a session; more are refused.
  std::size_t max_proxies = 16;
  // Values for our clients: the number of sessions of one client that may offer the same proxies at
  // a time (0: one), and other servers ("host:port") that the client should connect to.
  std::int64_t links = 0;
  std::vector<std::string> servers = {};
  // Values for our clients: the maximum number of sessions while those are nearly full, and of work
  // connections of one session at a time; 0: not sent.
  std::int64_t max_links = 0;
  std::int64_t max_work_conns = 0;
  // Reports Pings as events, for answer_ping(); otherwise this class sends the Pongs.
  bool asks_for_pings = false;
  // Set for a client that uses v2 with a supported hello.
  std::optional<ServerOpening> opening = {};
};

// Server side of a control stream after an accepted Login, without I/O. The owner authorizes
// proxies and Pings; this class implements the protocol. Takes bytes and randomness; returns bytes
// to send and events. Not thread-safe.
class ServerControl {
 public:
  // Accepts the login. `run_id` identifies the session. `iv`: Aes128Cfb::kIvSize unpredictable
  // bytes, for v1.
  ServerControl(ServerControlOptions options, const Login& login, std::string run_id,
                std::string_view iv);

  struct Event {
    enum class What : std::uint8_t {
      new_proxy,     // needs accept_proxy() or refuse_proxy()
      proxy_closed,  // by the client, at any time
      pinged,        // needs answer_ping()
    };
    What what = What::new_proxy;
    NewProxy proxy = {};  // proxy_closed: only the name
    Ping ping = {};
  };
  // Processes the next bytes of the stream, which it decrypts in place, and appends the resulting
  // events.
  void receive(std::span<char> bytes, std::vector<Event>& events);
  // Bytes to send; the caller removes sent bytes from the string.
  [[nodiscard]] std::string& output() { return output_; }

  // Respond to a new_proxy. They do nothing if the client has closed the proxy since.
  void accept_proxy(std::string_view name, std::string_view remote_addr);
  void refuse_proxy(std::string_view name, std::string_view error);
  // Responds to a Ping. With an error, the client ends the session.
  void answer_ping(std::string_view error = {});
  // Requests one more work connection.
  void want_work();

  // The error that ended the session: protocol, too_large. All calls do nothing after it.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Number of work connections to keep waiting for users.
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
