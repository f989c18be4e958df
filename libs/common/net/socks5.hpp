#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::net {

// Where a SOCKS proxy is to connect to, and as whom.
struct Socks5Request {
  std::string host;  // a name, which the proxy looks up, or an IP address without brackets
  std::uint16_t port = 0;
  std::string user = {};  // empty: no authentication is offered
  Secret password = {};
};

// The client's side of a SOCKS 5 handshake (RFC 1928, with user name and password by RFC 1929), as
// a state machine without I/O:
//
//   write(output()); while (!done()) { feed(what was read); write(output()); }
//
// After done() the connection belongs to the destination. A failure is final.
class Socks5Handshake {
 public:
  // Fails with invalid_argument when the host, the user name or the password does not fit (1 to 255
  // bytes each), or the port is 0.
  static Result<Socks5Handshake> start(const Socks5Request& request);

  // What to send now; empty when the proxy is to speak. Holds the password once, if at all.
  Secret output();
  // Takes bytes from the proxy and tells how many of them belong to the handshake: all, unless it
  // is done. Errors: `protocol` when the peer is no SOCKS 5 proxy, `unauthenticated` when it wants
  // or refuses credentials, `forbidden` by its rules, `unavailable` when it cannot connect,
  // `unsupported` when it cannot do what is asked.
  Result<std::size_t> feed(std::string_view bytes);
  [[nodiscard]] bool done() const { return phase_ == Phase::done; }

 private:
  enum class Phase { method, authentication, reply, done };
  Socks5Handshake() = default;

  // How many bytes the answer under way has, as far as its beginning tells.
  [[nodiscard]] std::size_t answer_size() const;
  Result<void> take_answer();

  Phase phase_ = Phase::method;
  std::string answer_;     // the part received of the answer under way
  Secret output_;          // to be sent now
  Secret authentication_;  // to be sent when the proxy asks for it; empty: never
  std::string connect_;    // to be sent last
};

}  // namespace gitops::net
