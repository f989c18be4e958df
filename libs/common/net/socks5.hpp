#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::net {

// Destination of a SOCKS proxy's connection, and the client's credentials.
struct Socks5Request {
  std::string host;  // a name, resolved by the proxy, or an IP address without brackets
  std::uint16_t port = 0;
  std::string user = {};  // empty: offers no authentication
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
  // Starts a handshake. Error: invalid_argument, if the host, the user name or the password is
  // empty or longer than 255 bytes, or the port is 0.
  static Result<Socks5Handshake> start(const Socks5Request& request);

  // Returns the bytes to send now; empty while waiting for the proxy's reply. At most one output of
  // a handshake contains the password.
  Secret output();
  // Returns the minimum number of bytes still to come from the proxy; 0 after done(). Reading no
  // more than this leaves the destination's bytes on the connection.
  [[nodiscard]] std::size_t expects() const;
  // Processes bytes of the proxy and returns the number of them that belong to the handshake: all
  // of them before done(). Errors: `protocol` (not a SOCKS 5 proxy), `unauthenticated` (credentials
  // are missing or refused), `forbidden` (by the proxy's rules), `unavailable` (the proxy cannot
  // reach the destination), `unsupported` (the proxy lacks the command or the type of address).
  Result<std::size_t> feed(std::string_view bytes);
  [[nodiscard]] bool done() const { return phase_ == Phase::done; }

 private:
  enum class Phase { method, authentication, reply, done };
  Socks5Handshake() = default;

  // Returns the size of the current reply, as far as its first bytes determine it.
  [[nodiscard]] std::size_t answer_size() const;
  Result<void> take_answer();

  Phase phase_ = Phase::method;
  std::string answer_;     // received part of the current reply
  Secret output_;          // to send next
  Secret authentication_;  // sent if the proxy requires it; empty: never
  std::string connect_;    // to send last
};

}  // namespace gitops::net
