#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::net {

// The destination that a SOCKS proxy connects to, and the client's credentials.
struct Socks5Request {
  std::string host;  // a name, which the proxy resolves, or an IP address without brackets
  std::uint16_t port = 0;
  std::string user = {};  // empty: authentication is not offered
  Secret password = {};
};

// The client side of a SOCKS 5 handshake (RFC 1928; user name and password: RFC 1929), as a state
// machine without I/O:
//
//   write(output()); while (!done()) { feed(read at most expects() bytes); write(output()); }
//
// After done() the connection carries the destination's bytes. A failure is final.
class Socks5Handshake {
 public:
  // Fails with invalid_argument when the host, the user name or the password is empty or longer
  // than 255 bytes, or the port is 0.
  static Result<Socks5Handshake> start(const Socks5Request& request);

  // The bytes to send now; empty while the proxy's reply is awaited. At most one output of a
  // handshake holds the password.
  Secret output();
  // The smallest number of bytes that the proxy still sends; 0 after done(). A reader that takes no
  // more than this leaves the destination's bytes on the connection.
  [[nodiscard]] std::size_t expects() const;
  // Takes bytes from the proxy and returns how many of them belong to the handshake: all of them
  // before done(). Errors: `protocol` (not a SOCKS 5 proxy), `unauthenticated` (credentials are
  // missing or refused), `forbidden` (by the proxy's rules), `unavailable` (the proxy cannot reach
  // the destination), `unsupported` (the proxy lacks the command or the type of address).
  Result<std::size_t> feed(std::string_view bytes);
  [[nodiscard]] bool done() const { return phase_ == Phase::done; }

 private:
  enum class Phase { method, authentication, reply, done };
  Socks5Handshake() = default;

  // The size of the current reply, as far as its first bytes determine it.
  [[nodiscard]] std::size_t answer_size() const;
  Result<void> take_answer();

  Phase phase_ = Phase::method;
  std::string answer_;     // the part of the current reply that has been received
  Secret output_;          // sent next
  Secret authentication_;  // sent when the proxy asks for it; empty: never
  std::string connect_;    // sent last
};

}  // namespace gitops::net
