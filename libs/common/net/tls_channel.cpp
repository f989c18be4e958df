#include "common/net/tls_channel.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/net/more_follows.hpp"
#include "common/net/tls_context.hpp"

namespace gitops::net {
namespace {

constexpr std::size_t kRecord = 16 * 1024;
constexpr std::size_t kMaxHeldBack = 64 * 1024;

}  // namespace

// OpenSSL's side of the channel: a BIO that reads from and writes to the channel below.
struct TlsChannel::Engine {
  Engine(Channel& c, std::shared_ptr<asio::ssl::context> with)
      : below(c), context(std::move(with)), ssl(SSL_new(context->native_handle())) {
    BIO* bio = BIO_new(method());
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
    SSL_set_read_ahead(ssl, 1);  // one read of the channel for a record instead of two
  }
  ~Engine() { SSL_free(ssl); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  static Engine& of(BIO* bio) { return *static_cast<Engine*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* out, int size) {
    auto& self = of(bio);
    BIO_clear_retry_flags(bio);
    const auto read = self.below.try_read({out, static_cast<std::size_t>(size)});
    if (read.what == Transfer::data) return static_cast<int>(read.size);
    if (read.what == Transfer::nothing) BIO_set_retry_read(bio);
    self.ended = read.what == Transfer::end;
    self.lost = read.what == Transfer::lost;
    return self.ended ? 0 : -1;
  }

  static int write(BIO* bio, const char* data, int size) {
    auto& self = of(bio);
    BIO_clear_retry_flags(bio);
    const std::string_view bytes(data, static_cast<std::size_t>(size));
    if (self.flush() != Transfer::data) return self.hold_back(bio, bytes);
    const asio::const_buffer buffer(bytes.data(), bytes.size());
    const auto written = self.below.try_write(std::span(&buffer, 1));
    if (written.what == Transfer::data) return static_cast<int>(written.size);
    self.lost = written.what != Transfer::nothing;
    return self.hold_back(bio, bytes);
  }

  // Holds back messages that OpenSSL sends by itself during a read (a key update, an alert), so
  // that the reader does not wait for the other direction. They are sent before the next write.
  int hold_back(BIO* bio, std::string_view bytes) {
    if (lost) return -1;
    if (!reading || held_back.size() + bytes.size() > kMaxHeldBack) {
      BIO_set_retry_write(bio);
      return -1;
    }
    held_back.append(bytes);
    return static_cast<int>(bytes.size());
  }

  // Sends held-back messages. Returns `data` when none is left.
  Transfer::What flush() {
    while (!held_back.empty()) {
      const asio::const_buffer buffer(held_back.data(), held_back.size());
      const auto written = below.try_write(std::span(&buffer, 1));
      lost = written.what == Transfer::lost;
      if (written.what != Transfer::data) return written.what;
      held_back.erase(0, written.size);
    }
    return Transfer::data;
  }

  bool holds_bytes() const { return SSL_has_pending(ssl) == 1 || below.holds_bytes(); }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return of(bio).ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
      BIO_meth_set_read(m, &Engine::read);
      BIO_meth_set_write(m, &Engine::write);
      BIO_meth_set_ctrl(m, &Engine::control);
      return m;
    }();
    return made;
  }

  Channel& below;
  std::shared_ptr<asio::ssl::context> context;
  SSL* ssl;
  std::string held_back;
  bool reading = false;  // within SSL_read
  bool ended = false;    // the channel below
  bool lost = false;
};

TlsChannel::TlsChannel(std::unique_ptr<Channel> below, std::shared_ptr<asio::ssl::context> context)
    : Channel(below->reactor(), below->readiness()),
      below_(std::move(below)),
      engine_(std::make_unique<Engine>(*below_, std::move(context))) {
  below_->set_deadline(kNever);  // this channel has its own deadlines
}

TlsChannel::~TlsChannel() {
  TlsChannel::close();
}

// Converts the failure of an OpenSSL call.
Transfer TlsChannel::failed(int returned) {
  Engine& engine = *engine_;
  const int what = SSL_get_error(engine.ssl, returned);
  if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
    return {.what = Transfer::nothing};
  }
  if (what == SSL_ERROR_ZERO_RETURN) return {.what = Transfer::end};
  const auto reason = ERR_get_error();
  ERR_clear_error();
  if (engine.lost || !below_->is_open()) {
    fail_with(below_->failure());
  } else if (engine.ended || ERR_GET_REASON(reason) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    fail_with({.code = ErrorCode::unavailable,
               .message = "the peer closed the connection inside of TLS"});
  } else {
    const boost::system::error_code ec(static_cast<int>(reason), asio::error::get_ssl_category());
    fail_with({.code = ErrorCode::tls,
               .message = describe_tls_error(ec, SSL_get_verify_result(engine.ssl))});
  }
  return {.what = Transfer::lost};
}

Transfer TlsChannel::try_read(std::span<char> room) {
  Engine& engine = *engine_;
  ERR_clear_error();
  engine.reading = true;
  const auto most = std::min<std::size_t>(room.size(), INT_MAX);
  const int size = SSL_read(engine.ssl, room.data(), static_cast<int>(most));
  engine.reading = false;
  buffered_ = size > 0 && engine.holds_bytes();
  if (size > 0) return {.what = Transfer::data, .size = static_cast<std::size_t>(size)};
  return failed(size);
}

Transfer TlsChannel::try_write(std::span<const asio::const_buffer> buffers) {
  Engine& engine = *engine_;
  std::array<char, kRecord> record;
  asio::const_buffer next;
  if (!buffers.empty()) next = buffers.front();
  // A retry after a write that would have blocked must begin with the same bytes. It does, since
  // the gathered bytes depend only on the buffers.
  if (buffers.size() > 1 && next.size() < record.size()) {
    std::size_t gathered = 0;
    for (const auto& buffer : buffers) {
      const auto part = std::min(buffer.size(), record.size() - gathered);
      if (part > 0) std::memcpy(record.data() + gathered, buffer.data(), part);
      gathered += part;
    }
    next = asio::const_buffer(record.data(), gathered);
  }
  if (next.size() == 0) return {.what = Transfer::data};
  ERR_clear_error();
  const MoreFollows more(asio::buffer_size(buffers) > record.size());
  const auto most = std::min<std::size_t>(next.size(), INT_MAX);
  const int size = SSL_write(engine.ssl, next.data(), static_cast<int>(most));
  if (size > 0) return {.what = Transfer::data, .size = static_cast<std::size_t>(size)};
  return failed(size);
}

Task<Result<void>> TlsChannel::handshake() {
  Engine& engine = *engine_;
  while (true) {
    ERR_clear_error();
    const int done = SSL_do_handshake(engine.ssl);
    if (done == 1) {
      // The peer's first data may have arrived with the end of its handshake.
      buffered_ = engine.holds_bytes();
      co_return Result<void>{};
    }
    const bool wants_write = SSL_want_write(engine.ssl);
    const auto outcome = failed(done);
    if (outcome.what == Transfer::nothing) {
      if (wants_write ? write_expired() : read_expired()) {
        close();
        co_return fail(ErrorCode::timeout, "the TLS handshake timed out");
      }
      if (wants_write) {
        co_await writable();
      } else {
        co_await readable();
      }
      continue;
    }
    auto error = failure();
    if (error.code == ErrorCode::unavailable) {
      error = {.code = ErrorCode::tls,
               .message = "the peer closed the connection during the TLS handshake"};
    }
    close();
    co_return std::unexpected(std::move(error));
  }
}

Task<Result<void>> TlsChannel::handshake_client(const std::string& verify_name) {
  SSL_set_connect_state(engine_->ssl);
  if (auto ready = prepare_client_handshake(engine_->ssl, verify_name); !ready) co_return ready;
  co_return co_await handshake();
}

Task<Result<void>> TlsChannel::handshake_server() {
  SSL_set_accept_state(engine_->ssl);
  co_return co_await handshake();
}

// Sends close_notify if that is possible without waiting.
void TlsChannel::send_close_notify() {
  if (!below_->is_open() || SSL_is_init_finished(engine_->ssl) != 1) return;
  SSL_shutdown(engine_->ssl);
  ERR_clear_error();
}

void TlsChannel::shutdown_send() {
  send_close_notify();
  below_->shutdown_send();
}

void TlsChannel::close() {
  send_close_notify();
  below_->close();
}

void TlsChannel::abort() {
  below_->abort();
}

Task<Result<std::unique_ptr<Channel>>> start_tls(std::unique_ptr<Channel> channel,
                                                 std::shared_ptr<asio::ssl::context> context,
                                                 const std::string& verify_name,
                                                 Deadline deadline) {
  auto tls = std::make_unique<TlsChannel>(std::move(channel), std::move(context));
  tls->set_deadline(deadline);
  auto done = co_await tls->handshake_client(verify_name);
  if (!done) co_return std::unexpected(done.error());
  tls->set_deadline(kNever);
  co_return tls;
}

}  // namespace gitops::net
