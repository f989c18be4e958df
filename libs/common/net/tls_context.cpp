#include "common/net/tls_context.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "common/core/small_file.hpp"
#include "common/core/text.hpp"

namespace gitops::net {
namespace {

namespace ssl = boost::asio::ssl;

const Log kLog("tls");

struct BioDelete {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Delete {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyDelete {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, BioDelete>;
using Certificate = std::unique_ptr<X509, X509Delete>;
using Key = std::unique_ptr<EVP_PKEY, KeyDelete>;

Bio memory_bio(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Refuses to ask for a pass phrase.
int no_password(char*, int, int, void*) {
  return 0;
}

Result<std::vector<Certificate>> read_certificates(std::string_view pem,
                                                   const std::string& source) {
  const Bio bio = memory_bio(pem);
  std::vector<Certificate> certificates;
  while (Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)}) {
    certificates.push_back(std::move(certificate));
  }
  const auto last = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return fail(ErrorCode::tls, source + ": a certificate is malformed");
  if (certificates.empty()) return fail(ErrorCode::tls, source + ": holds no certificate");
  return certificates;
}

Result<void> load_trust(ssl::context& context, std::string_view pem, const std::string& source) {
  auto certificates = read_certificates(pem, source);
  if (!certificates) return std::unexpected(certificates.error());
  X509_STORE* store = SSL_CTX_get_cert_store(context.native_handle());
  for (const Certificate& certificate : *certificates)
    X509_STORE_add_cert(store, certificate.get());
  ERR_clear_error();  // a duplicate certificate in the bundle is not an error
  return {};
}

Result<void> load_certificate(ssl::context& context, std::string_view pem,
                              const std::string& source) {
  auto certificates = read_certificates(pem, source);
  if (!certificates) return std::unexpected(certificates.error());
  SSL_CTX* native = context.native_handle();
  if (SSL_CTX_use_certificate(native, certificates->front().get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::tls, source + ": the certificate is not usable");
  }
  for (std::size_t i = 1; i < certificates->size(); ++i) {
    SSL_CTX_add1_chain_cert(native, (*certificates)[i].get());
  }
  return {};
}

Result<void> load_key(ssl::context& context, std::string_view pem, const std::string& source) {
  const Bio bio = memory_bio(pem);
  const Key key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)};
  if (!key) {
    ERR_clear_error();
    return fail(ErrorCode::tls, source + ": holds no usable private key");
  }
  if (SSL_CTX_use_PrivateKey(context.native_handle(), key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::tls, source + ": the private key does not belong to the certificate");
  }
  return {};
}

// Text of a file, or inline text; `source` is its name in errors. An empty source means neither.
struct Material {
  std::string source;
  Secret text;
};

Result<Material> material(const std::string& file, std::string_view inline_text,
                          std::string_view what) {
  if (!file.empty()) {
    auto text = read_small_file(file);
    if (!text) return fail(ErrorCode::tls, file + ": " + text.error().message);
    return Material{file, Secret(std::move(*text))};
  }
  if (!inline_text.empty()) return Material{std::string(what), Secret(std::string(inline_text))};
  return Material{};
}

// Returns the file, or the files of the folder in the order of their names. Skips hidden entries,
// where Kubernetes keeps the versions of a mounted Secret.
std::vector<std::string> files_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) files.push_back(it->path().string());
  }
  std::ranges::sort(files);
  return files;
}

int select_http_1_1(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void*) {
  static constexpr unsigned char kOffer[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOffer, sizeof(kOffer) - 1, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

TlsContext::TlsContext(Role role, TlsOptions options) : role_(role), options_(std::move(options)) {}

std::string TlsContext::fingerprint() const {
  std::string out;
  for (const std::string* path :
       {&options_.ca_file, &options_.certificate_file, &options_.key_file}) {
    out += (path->empty() ? "" : file_fingerprint(*path)) + ";";
  }
  if (options_.extra_ca_file.empty()) return out;
  for (const std::string& path : files_at(options_.extra_ca_file)) {
    out += path + "=" + file_fingerprint(path) + ";";
  }
  return out;
}

Result<std::shared_ptr<ssl::context>> TlsContext::get(Clock::time_point now) {
  if (context_ && now < next_check_) return context_;
  next_check_ = now + std::chrono::seconds(1);
  std::string current = fingerprint();
  if (context_ && current == loaded_fingerprint_) return context_;
  auto built = build();
  if (!built) {
    if (!context_) return std::unexpected(built.error());
    if (const auto verdict = reload_errors_.check(built.error().message, now); verdict.pass) {
      kLog.warning("certificates changed but cannot be used; the old ones stay in use",
                   {{"error", built.error().message}, {"suppressed", verdict.suppressed}});
    }
    return context_;
  }
  context_ = std::move(*built);
  loaded_fingerprint_ = std::move(current);
  ++generation_;
  return context_;
}

Result<std::shared_ptr<ssl::context>> TlsContext::build() const {
  const bool client = role_ == Role::client;
  auto context =
      std::make_shared<ssl::context>(client ? ssl::context::tls_client : ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);

  auto ca = material(options_.ca_file, options_.ca_pem, "the inline CA bundle");
  if (!ca) return std::unexpected(ca.error());
  auto certificate =
      material(options_.certificate_file, options_.certificate_pem, "the inline certificate");
  if (!certificate) return std::unexpected(certificate.error());
  auto key = material(options_.key_file, options_.key_pem.reveal(), "the inline private key");
  if (!key) return std::unexpected(key.error());

  if (!ca->source.empty()) {
    if (auto r = load_trust(*context, ca->text.reveal(), ca->source); !r)
      return std::unexpected(r.error());
  } else if (client && !options_.insecure_skip_verify) {
    SSL_CTX_set_default_verify_paths(native);  // honours SSL_CERT_FILE and SSL_CERT_DIR
  }
  for (const std::string& path : files_at(options_.extra_ca_file)) {
    auto extra = material(path, {}, {});
    if (!extra) return std::unexpected(extra.error());
    if (trimmed(extra->text.reveal()).empty()) continue;
    if (auto r = load_trust(*context, extra->text.reveal(), extra->source); !r)
      return std::unexpected(r.error());
  }
  if (certificate->source.empty() != key->source.empty()) {
    return fail(ErrorCode::tls, "a certificate and its private key must be given together");
  }
  if (!certificate->source.empty()) {
    if (auto r = load_certificate(*context, certificate->text.reveal(), certificate->source); !r) {
      return std::unexpected(r.error());
    }
    if (auto r = load_key(*context, key->text.reveal(), key->source); !r)
      return std::unexpected(r.error());
  } else if (!client) {
    return fail(ErrorCode::tls, "a TLS server needs a certificate and its private key");
  }

  if (client) {
    SSL_CTX_set_verify(native, options_.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       nullptr);
    static constexpr unsigned char kOffer[] = "\x08http/1.1";
    SSL_CTX_set_alpn_protos(native, kOffer, sizeof(kOffer) - 1);
  } else {
    SSL_CTX_set_alpn_select_cb(native, select_http_1_1, nullptr);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
    if (!ca->source.empty()) {
      SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      // Disables session resumption: each client proves its certificate on each connection (AC-08).
      SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
      SSL_CTX_set_num_tickets(native, 0);
    }
  }
  return context;
}

Result<void> prepare_client_handshake(SSL* ssl, const std::string& verify_name) {
  if (verify_name.empty()) return {};
  boost::system::error_code ec;
  boost::asio::ip::make_address(verify_name, ec);
  const bool is_name = ec.failed();
  std::string name = verify_name;
  if (name.ends_with('.')) name.pop_back();
  if (is_name) SSL_set_tlsext_host_name(ssl, name.c_str());
  if (SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE) return {};
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int ok = is_name ? X509_VERIFY_PARAM_set1_host(param, name.data(), name.size())
                         : X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
  if (ok != 1) return fail(ErrorCode::invalid_argument, "the name to verify is malformed");
  return {};
}

std::string describe_tls_error(const boost::system::error_code& error, long verify_result) {
  if (error.category() == boost::asio::error::get_ssl_category()) {
    const auto code = static_cast<unsigned long>(error.value());
    const int reason = ERR_GET_REASON(code);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verify_result != X509_V_OK) {
      return std::string("certificate verify failed: ") +
             X509_verify_cert_error_string(verify_result);
    }
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
      return "the peer does not speak TLS";
    }
    if (const char* text = ERR_reason_error_string(code)) return text;
  }
  if (error == ssl::error::stream_truncated) return "the peer closed the connection inside of TLS";
  return error.message();
}

}  // namespace gitops::net
