#pragma once

#include <memory>
#include <string>

#include "common/core/time.hpp"
#include "common/net/channel.hpp"

namespace gitops::net {

// The certificate that a server presents. Names as RFC 2253 writes them; text of the peer.
struct PeerCertificate {
  std::string subject;
  std::string issuer;
  WallTime not_before;
  WallTime not_after;
};

// Performs a TLS handshake with a server and returns its certificate, whether it is valid or not. Nothing else is sent
// or read, and the connection is closed: it must carry no secret. `server_name` is sent as SNI (not for IP addresses).
// Errors: those of a handshake in which the server has presented no certificate.
Task<Result<PeerCertificate>> read_certificate(std::unique_ptr<Channel> channel,
                                               std::string server_name, Deadline deadline);

}  // namespace gitops::net
