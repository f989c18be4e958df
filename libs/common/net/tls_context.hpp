#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/system/error_code.hpp>

#include "common/core/error.hpp"
#include "common/core/log.hpp"
#include "common/core/time.hpp"
#include "common/net/tls_options.hpp"

struct ssl_st;  // OpenSSL's SSL

namespace boost::asio::ssl {
class context;
}

namespace gitops::net {

// Builds an OpenSSL context from TlsOptions, and a new one whenever a file has changed. TLS 1.2 and
// 1.3 with OpenSSL's default ciphers. Loads the system's roots only if no CA is given. Loop thread
// only.
class TlsContext {
 public:
  enum class Role { client, server };
  TlsContext(Role role, TlsOptions options);

  // Returns the current context; connections keep the one that they began with. The error for
  // unreadable or invalid files names the file. After a first success the last good context remains
  // in use, and the error is logged (rate-limited).
  Result<std::shared_ptr<boost::asio::ssl::context>> get(Clock::time_point now);
  [[nodiscard]] const TlsOptions& options() const { return options_; }
  // Number of successful (re)loads. A pooled client connection made under an older generation is
  // not reused after a rotation.
  [[nodiscard]] unsigned generation() const { return generation_; }

 private:
  [[nodiscard]] std::string fingerprint() const;  // inodes, sizes and times of the files
  [[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> build() const;

  Role role_;
  TlsOptions options_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::string loaded_fingerprint_;
  Clock::time_point next_check_{};
  RepeatFilter reload_errors_{std::chrono::minutes(1)};
  unsigned generation_ = 0;
};

// Prepares a connection before its handshake: verifies the peer as `name` and sends it as SNI (not
// for IP addresses). Does nothing if `name` is empty, and no check if the context does not verify.
Result<void> prepare_client_handshake(ssl_st* ssl, const std::string& name);

// Returns one line for a person: the failed check of the peer's certificate ("self-signed
// certificate", "certificate has expired", "hostname mismatch"…), or the OpenSSL reason.
std::string describe_tls_error(const boost::system::error_code& error, long verify_result);

}  // namespace gitops::net
