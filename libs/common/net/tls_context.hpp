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
// 1.3 with OpenSSL's default ciphers. The system's roots are loaded only when no CA is given. Loop
// thread only.
class TlsContext {
 public:
  enum class Role { client, server };
  TlsContext(Role role, TlsOptions options);

  // The current context; connections keep the one they began with. Unreadable or wrong files: an
  // error that names the file; after a first success the last good context stays in use and the log
  // says so (rate-limited).
  Result<std::shared_ptr<boost::asio::ssl::context>> get(Clock::time_point now);
  [[nodiscard]] const TlsOptions& options() const { return options_; }
  // Counts successful (re)loads; a pooled client connection made under an older generation is not
  // reused after a rotation.
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

// Makes a connection that has not begun its handshake verify the peer as `name` and send it as SNI
// (not for IP addresses); nothing when `name` is empty, no check when its context does not verify.
Result<void> prepare_client_handshake(ssl_st* ssl, const std::string& name);

// One line for a person: which check of the peer's certificate failed ("self-signed certificate",
// "certificate has expired", "hostname mismatch"…), or the OpenSSL reason.
std::string describe_tls_error(const boost::system::error_code& error, long verify_result);

}  // namespace gitops::net
