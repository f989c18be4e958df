#include "common/http/proxy_wire.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ssl/error.hpp>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>

#include "common/http/tls.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kMaxBuffers = 18;
constexpr std::size_t kMaxLinger = 1024 * 1024;
constexpr auto kLinger = std::chrono::seconds(2);

Error lost(int number) {
  return {.code = ErrorCode::unavailable, .message = std::generic_category().message(number)};
}

Error timed_out() {
  return {.code = ErrorCode::timeout, .message = "timed out"};
}

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

}  // namespace

struct Wire::Tls {
  explicit Tls(std::shared_ptr<asio::ssl::context> c)
      : context(std::move(c)), ssl(SSL_new(context->native_handle())) {
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
  }
  ~Tls() { SSL_free(ssl); }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  std::shared_ptr<asio::ssl::context> context;
  SSL* ssl;
};

Wire::Wire(Socket socket, TimerWheel& wheel)
    : socket_(std::move(socket)), reading_(wheel, *this), writing_(wheel, *this) {
  boost::system::error_code ec;
  socket_.non_blocking(true, ec);
  if (!ec) socket_.native_non_blocking(true, ec);
  const int on = 1;
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Wire::~Wire() {
  close();
}

void Wire::set_read_deadline(Deadline deadline) {
  reading_.timer.expires_at(deadline);
}

void Wire::set_write_deadline(Deadline deadline) {
  writing_.timer.expires_at(deadline);
}

// One coroutine frame at most per wait: it lives in Asio's per-thread cache.
Task<Result<void>> Wire::wait(Direction& direction, Socket::wait_type what) {
  while (true) {
    if (direction.expired) co_return std::unexpected(timed_out());
    if (!socket_.is_open() || (stopped_ && &direction == &reading_)) {
      co_return fail(ErrorCode::unavailable, "the connection was closed");
    }
    direction.waiting = true;
    const auto [ec] = co_await socket_.async_wait(what, asio::as_tuple(asio::deferred));
    direction.waiting = false;
    if (!ec) co_return Result<void>{};
    if (ec != asio::error::operation_aborted) co_return std::unexpected(lost(ec.value()));
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
      throw boost::system::system_error(asio::error::operation_aborted);
    }
    // Otherwise the other direction's deadline passed, or ours, or somebody closed.
  }
}

Result<Socket::wait_type> Wire::tls_wants(int returned) {
  const int what = SSL_get_error(tls_->ssl, returned);
  if (what == SSL_ERROR_WANT_READ) return Socket::wait_read;
  if (what == SSL_ERROR_WANT_WRITE) return Socket::wait_write;
  if (what == SSL_ERROR_SYSCALL) return std::unexpected(lost(errno == 0 ? ECONNRESET : errno));
  const auto reason = ERR_get_error();
  ERR_clear_error();
  const boost::system::error_code ec(static_cast<int>(reason), asio::error::get_ssl_category());
  return fail(ErrorCode::tls, describe_tls_error(ec, SSL_get_verify_result(tls_->ssl)));
}

Task<Result<void>> Wire::handshake() {
  while (true) {
    ERR_clear_error();
    const int done = SSL_do_handshake(tls_->ssl);
    if (done == 1) co_return Result<void>{};
    const auto what = tls_wants(done);
    if (!what) co_return std::unexpected(what.error());
    if (auto ready = co_await wait(reading_, *what); !ready) co_return ready;
  }
}

Task<Result<void>> Wire::handshake_server(std::shared_ptr<asio::ssl::context> context) {
  tls_ = std::make_unique<Tls>(std::move(context));
  SSL_set_fd(tls_->ssl, socket_.native_handle());
  SSL_set_accept_state(tls_->ssl);
  co_return co_await handshake();
}

Task<Result<void>> Wire::handshake_client(std::shared_ptr<asio::ssl::context> context,
                                          const std::string& name) {
  tls_ = std::make_unique<Tls>(std::move(context));
  SSL* ssl = tls_->ssl;
  SSL_set_fd(ssl, socket_.native_handle());
  SSL_set_connect_state(ssl);
  if (auto ready = prepare_client_handshake(ssl, name); !ready) co_return ready;
  co_return co_await handshake();
}

Wire::Read Wire::try_read(std::span<char> room) {
  if (!socket_.is_open()) return {.failed = true};
  if (!tls_) {
    const auto size = ::recv(socket_.native_handle(), room.data(), room.size(), 0);
    if (size >= 0) return {.size = static_cast<std::size_t>(size)};
    return {.again = would_block(errno), .failed = !would_block(errno)};
  }
  ERR_clear_error();
  const int size = SSL_read(tls_->ssl, room.data(), static_cast<int>(room.size()));
  if (size > 0) return {.size = static_cast<std::size_t>(size)};
  if (SSL_get_error(tls_->ssl, size) == SSL_ERROR_ZERO_RETURN) return {};
  if (tls_wants(size)) return {.again = true};
  return {.failed = true};
}

Task<Result<std::size_t>> Wire::read_into(ProxyBuffer& buffer) {
  bool ready = tls_ && SSL_has_pending(tls_->ssl) == 1;
  while (true) {
    if (!ready) {
      if (auto waited = co_await wait(reading_, Socket::wait_read); !waited) {
        co_return std::unexpected(waited.error());
      }
    }
    ready = false;
    const auto room = buffer.room();
    if (room.empty()) co_return std::size_t{0};
    const auto read = try_read(room);
    buffer.commit(read.size);
    if (read.size > 0) co_return read.size;
    buffer.release();
    if (read.failed) co_return fail(ErrorCode::unavailable, "the connection was lost");
    if (!read.again) co_return std::size_t{0};
  }
}

std::size_t Wire::write_at_once(std::span<const asio::const_buffer> buffers, bool& again,
                                Error& error) {
  std::array<iovec, kMaxBuffers> parts;
  std::size_t count = 0;
  for (const auto& buffer : buffers) {
    if (buffer.size() == 0 || count == parts.size()) continue;
    parts[count++] = {.iov_base = const_cast<void*>(buffer.data()), .iov_len = buffer.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  again = would_block(errno);
  if (!again) error = lost(errno);
  return 0;
}

Task<Result<void>> Wire::write(std::span<const asio::const_buffer> buffers, std::size_t* written) {
  std::array<asio::const_buffer, kMaxBuffers> left;
  std::string flat;  // TLS: small parts share a record
  std::size_t count = 0;
  if (tls_ && buffers.size() > 1) {
    for (const auto& buffer : buffers) {
      flat.append(static_cast<const char*>(buffer.data()), buffer.size());
    }
    left[count++] = asio::buffer(flat);
  } else {
    for (const auto& buffer : buffers) left[count++] = buffer;
  }
  std::size_t first = 0;
  while (true) {
    while (first < count && left[first].size() == 0) ++first;
    if (first == count) co_return Result<void>{};
    if (!socket_.is_open()) co_return fail(ErrorCode::unavailable, "the connection was closed");
    auto needs = Socket::wait_write;
    bool again = false;
    Error error;
    error.message.clear();
    std::size_t sent = 0;
    if (tls_) {
      ERR_clear_error();
      const int size =
          SSL_write(tls_->ssl, left[first].data(),
                    static_cast<int>(std::min<std::size_t>(left[first].size(), INT_MAX)));
      if (size > 0) {
        sent = static_cast<std::size_t>(size);
      } else if (const auto what = tls_wants(size)) {
        again = true;
        needs = *what;
      } else {
        error = what.error();
      }
    } else {
      sent = write_at_once(std::span(left).subspan(first, count - first), again, error);
    }
    if (!error.message.empty()) co_return std::unexpected(std::move(error));
    if (written != nullptr) *written += sent;
    while (sent > 0) {
      const auto step = std::min(sent, left[first].size());
      left[first] += step;
      sent -= step;
      if (left[first].size() == 0) ++first;
    }
    if (again) {
      if (auto ready = co_await wait(writing_, needs); !ready) co_return ready;
    }
  }
}

bool Wire::is_stale() {
  if (!socket_.is_open()) return true;
  char byte = 0;
  if (tls_) return !try_read({&byte, 1}).again;  // takes in session tickets
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
         !would_block(errno);
}

bool Wire::peer_closed() {
  if (!socket_.is_open()) return true;
  char byte = 0;
  const auto size = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size == 0 || (size < 0 && !would_block(errno));
}

void Wire::stop_reading() {
  stopped_ = true;
  boost::system::error_code ec;
  if (reading_.waiting) socket_.cancel(ec);
}

void Wire::shutdown_send() {
  boost::system::error_code ec;
  if (tls_) SSL_shutdown(tls_->ssl);
  if (socket_.is_open()) socket_.shutdown(Socket::shutdown_send, ec);
}

void Wire::close() {
  if (!socket_.is_open()) return;
  boost::system::error_code ec;
  if (tls_ && SSL_is_init_finished(tls_->ssl)) SSL_shutdown(tls_->ssl);
  ERR_clear_error();
  socket_.close(ec);
}

void Wire::abort() {
  if (!socket_.is_open()) return;
  boost::system::error_code ec;
  socket_.set_option(asio::socket_base::linger(true, 0), ec);
  socket_.close(ec);
}

Task<> Wire::close_gracefully() {
  shutdown_send();
  reading_.expired = false;
  set_read_deadline(deadline_after(kLinger));
  std::array<char, 4096> sink;
  for (std::size_t dropped = 0; dropped < kMaxLinger;) {
    if (auto ready = co_await wait(reading_, Socket::wait_read); !ready) break;
    const auto size = ::recv(socket_.native_handle(), sink.data(), sink.size(), 0);
    if (size == 0 || (size < 0 && !would_block(errno))) break;
    if (size > 0) dropped += static_cast<std::size_t>(size);
  }
  close();
}

asio::ip::tcp::endpoint Wire::remote() const {
  boost::system::error_code ec;
  return socket_.remote_endpoint(ec);
}

}  // namespace gitops::http
