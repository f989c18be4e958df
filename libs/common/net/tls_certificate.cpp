#include "common/net/tls_certificate.hpp"

#include <ctime>
#include <optional>
#include <utility>

#include <boost/asio/ssl/context.hpp>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/net/tls_channel.hpp"

namespace gitops::net {
namespace {

std::string text_of(const X509_NAME* name) {
  BIO* const bio = BIO_new(BIO_s_mem());
  X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

WallTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

// Takes the place of OpenSSL's verification: keeps the server's own certificate, and accepts it.
int keep(X509_STORE_CTX* store, void* into) {
  const X509* const certificate = X509_STORE_CTX_get0_cert(store);
  if (certificate == nullptr) return 0;
  *static_cast<std::optional<PeerCertificate>*>(into) =
      PeerCertificate{.subject = text_of(X509_get_subject_name(certificate)),
                      .issuer = text_of(X509_get_issuer_name(certificate)),
                      .not_before = time_of(X509_get0_notBefore(certificate)),
                      .not_after = time_of(X509_get0_notAfter(certificate))};
  return 1;
}

}  // namespace

Task<Result<PeerCertificate>> read_certificate(std::unique_ptr<Channel> channel,
                                               std::string server_name, Deadline deadline) {
  std::optional<PeerCertificate> found;
  const auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  context->set_verify_mode(asio::ssl::verify_peer);
  SSL_CTX_set_cert_verify_callback(context->native_handle(), &keep, &found);
  TlsChannel tls(std::move(channel), context);
  tls.set_deadline(deadline);
  const auto done = co_await tls.handshake_client(server_name);
  tls.close();
  // A server that asks for a client certificate may end the handshake after it has presented its own.
  if (found) co_return std::move(*found);
  if (!done) co_return std::unexpected(done.error());
  co_return fail(ErrorCode::tls, "the server presented no certificate");
}

}  // namespace gitops::net
