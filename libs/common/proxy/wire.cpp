#include "common/proxy/wire.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>

#include "common/net/tls_context.hpp"

namespace gitops::proxy {
namespace {

constexpr std::size_t kMaxBuffers = 18;
constexpr std::size_t kSmallWrite = 4 * 1024;
constexpr std::size_t kMaxLinger = 1024 * 1024;
constexpr auto kLinger = std::chrono::seconds(2);

Error lost(int number) {
  return {.code = ErrorCode::unavailable, .message = std::generic_category().message(number)};
}

Error closed() {
  return {.code = ErrorCode::unavailable, .message = "the connection was closed"};
}

Error timed_out() {
  return {.code = ErrorCode::timeout, .message = "timed out"};
}

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

// Small parts are put together: copying them costs less than handing over a list.
ssize_t send_parts(int descriptor, std::span<const asio::const_buffer> buffers) {
  std::size_t size = 0;
  for (const auto& buffer : buffers) size += buffer.size();
  if (size <= kSmallWrite) {
    std::array<char, kSmallWrite> all;
    std::size_t at = 0;
    for (const auto& buffer : buffers) {
      if (buffer.size() == 0) continue;
      std::memcpy(all.data() + at, buffer.data(), buffer.size());
      at += buffer.size();
    }
    return ::send(descriptor, all.data(), size, MSG_NOSIGNAL);
  }
  std::array<iovec, kMaxBuffers> parts;
  std::size_t count = 0;
  for (const auto& buffer : buffers) {
    if (buffer.size() == 0 || count == parts.size()) continue;
    parts[count++] = {.iov_base = const_cast<void*>(buffer.data()), .iov_len = buffer.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
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

Wire::Wire(int descriptor, net::Poller& poller, net::TimerWheel& wheel)
    : poller_(poller), reading_(wheel, *this), writing_(wheel, *this) {
  socket_.fd = descriptor;
  poller_.add(socket_);
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

Task<Result<void>> Wire::wait(const Direction& direction, net::Readiness& readiness) {
  while (true) {
    if (direction.expired) co_return std::unexpected(timed_out());
    if (!is_open() || (stopped_ && &direction == &reading_)) {
      co_return std::unexpected(closed());
    }
    if (readiness.ready) co_return Result<void>{};
    co_await poller_.wait(readiness);
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
      throw boost::system::system_error(asio::error::operation_aborted);
    }
  }
}

// Whoever waits looks again why.
void Wire::wake() {
  poller_.wake(socket_.read);
  poller_.wake(socket_.write);
}

Result<net::Readiness*> Wire::tls_wants(int returned) {
  const int what = SSL_get_error(tls_->ssl, returned);
  if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
    auto& readiness = what == SSL_ERROR_WANT_READ ? socket_.read : socket_.write;
    // An end that was told once is not told again.
    readiness.ready = what == SSL_ERROR_WANT_READ && socket_.hung_up;
    return &readiness;
  }
  if (what == SSL_ERROR_SYSCALL) return std::unexpected(lost(errno == 0 ? ECONNRESET : errno));
  const auto reason = ERR_get_error();
  ERR_clear_error();
  const boost::system::error_code ec(static_cast<int>(reason), asio::error::get_ssl_category());
  return fail(ErrorCode::tls, net::describe_tls_error(ec, SSL_get_verify_result(tls_->ssl)));
}

Task<Result<void>> Wire::handshake() {
  while (true) {
    ERR_clear_error();
    const int done = SSL_do_handshake(tls_->ssl);
    if (done == 1) co_return Result<void>{};
    const auto readiness = tls_wants(done);
    if (!readiness) co_return std::unexpected(readiness.error());
    if (auto waited = co_await wait(reading_, **readiness); !waited) co_return waited;
  }
}

Task<Result<void>> Wire::handshake_server(std::shared_ptr<asio::ssl::context> context) {
  tls_ = std::make_unique<Tls>(std::move(context));
  SSL_set_fd(tls_->ssl, socket_.fd);
  SSL_set_accept_state(tls_->ssl);
  co_return co_await handshake();
}

Task<Result<void>> Wire::handshake_client(std::shared_ptr<asio::ssl::context> context,
                                          const std::string& name) {
  tls_ = std::make_unique<Tls>(std::move(context));
  SSL* ssl = tls_->ssl;
  SSL_set_fd(ssl, socket_.fd);
  SSL_set_connect_state(ssl);
  if (auto ready = net::prepare_client_handshake(ssl, name); !ready) co_return ready;
  co_return co_await handshake();
}

WireRead Wire::try_read(std::span<char> room) {
  if (!is_open()) return {.what = WireRead::lost};
  if (!tls_) {
    const auto size = ::recv(socket_.fd, room.data(), room.size(), 0);
    // Less than there was room for: everything was read, unless the end comes, too.
    if (size > 0) {
      if (static_cast<std::size_t>(size) < room.size()) socket_.read.ready = socket_.hung_up;
      return {.what = WireRead::data, .size = static_cast<std::size_t>(size)};
    }
    if (size == 0) return {.what = WireRead::end};
    if (would_block(errno)) {
      socket_.read.ready = false;
      return {.what = WireRead::nothing};
    }
    return {.what = WireRead::lost};
  }
  ERR_clear_error();
  const int size = SSL_read(tls_->ssl, room.data(), static_cast<int>(room.size()));
  if (size > 0) return {.what = WireRead::data, .size = static_cast<std::size_t>(size)};
  if (SSL_get_error(tls_->ssl, size) == SSL_ERROR_ZERO_RETURN) return {.what = WireRead::end};
  if (tls_wants(size)) return {.what = WireRead::nothing};
  return {.what = WireRead::lost};
}

WireRead Wire::read_now(ProxyBuffer& buffer) {
  if (reading_.expired) return {.what = WireRead::timeout};
  if (!is_open() || stopped_) return {.what = WireRead::lost};
  const bool pending = tls_ && SSL_has_pending(tls_->ssl) == 1;
  if (!socket_.read.ready && !pending) return {.what = WireRead::nothing};
  const auto room = buffer.room();
  if (room.empty()) return {.what = WireRead::end};
  const auto read = try_read(room);
  buffer.commit(read.size);
  if (read.size == 0) buffer.release();
  return read;
}

Task<WireRead> Wire::read_into(ProxyBuffer& buffer) {
  auto read = read_now(buffer);
  while (read.what == WireRead::nothing) {
    co_await readable();
    read = read_now(buffer);
  }
  co_return read;
}

void Wire::take_what_is_there(ProxyBuffer& buffer) {
  const auto room = buffer.room();
  if (!room.empty() && socket_.read.ready) buffer.commit(try_read(room).size);
}

std::size_t Wire::write_at_once(std::span<const asio::const_buffer> buffers, bool& again,
                                Error& error) {
  const auto sent = send_parts(socket_.fd, buffers);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  again = would_block(errno);
  if (again) {
    socket_.write.ready = false;
  } else {
    error = lost(errno);
  }
  return 0;
}

bool Wire::write_now(std::span<const asio::const_buffer> buffers, std::size_t& written) {
  if (tls_ || !is_open()) return false;
  const auto sent = send_parts(socket_.fd, buffers);
  if (sent > 0) written = static_cast<std::size_t>(sent);
  return written == asio::buffer_size(buffers);
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
  const auto skip = [&left, &first](std::size_t size) {
    while (size > 0) {
      const auto step = std::min(size, left[first].size());
      left[first] += step;
      size -= step;
      if (left[first].size() == 0) ++first;
    }
  };
  if (written != nullptr) skip(*written);
  while (true) {
    while (first < count && left[first].size() == 0) ++first;
    if (first == count) co_return Result<void>{};
    if (!is_open()) co_return std::unexpected(closed());
    auto* needs = &socket_.write;
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
    skip(sent);
    if (again) {
      if (auto ready = co_await wait(writing_, *needs); !ready) co_return ready;
    }
  }
}

Task<Result<void>> Wire::finish_connect() {
  socket_.write.ready = false;
  if (auto waited = co_await wait(writing_, socket_.write); !waited) co_return waited;
  if (!socket_.hung_up) co_return Result<void>{};
  int number = 0;
  socklen_t size = sizeof(number);
  ::getsockopt(socket_.fd, SOL_SOCKET, SO_ERROR, &number, &size);
  if (number != 0) co_return std::unexpected(lost(number));
  co_return Result<void>{};
}

bool Wire::is_stale() {
  if (peer_closed()) return true;
  if (!tls_) return socket_.read.ready;
  char byte = 0;
  return try_read({&byte, 1}).what != WireRead::nothing;  // takes in session tickets
}

void Wire::stop_reading() {
  stopped_ = true;
  poller_.wake(socket_.read);
}

void Wire::find_dead_peer() {
  if (is_open()) net::set_tcp_options(socket_.fd);
}

void Wire::shutdown_send() {
  if (!is_open()) return;
  if (tls_) SSL_shutdown(tls_->ssl);
  ERR_clear_error();
  ::shutdown(socket_.fd, SHUT_WR);
}

void Wire::close() {
  if (!is_open()) return;
  if (tls_ && SSL_is_init_finished(tls_->ssl)) SSL_shutdown(tls_->ssl);
  ERR_clear_error();
  poller_.remove(socket_);
  ::close(std::exchange(socket_.fd, -1));
  wake();
}

void Wire::abort() {
  if (!is_open()) return;
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  poller_.remove(socket_);
  ::close(std::exchange(socket_.fd, -1));
  wake();
}

Task<> Wire::close_gracefully() {
  shutdown_send();
  reading_.expired = false;
  set_read_deadline(deadline_after(kLinger));
  std::array<char, 4096> sink;
  for (std::size_t dropped = 0; dropped < kMaxLinger;) {
    if (auto waited = co_await wait(reading_, socket_.read); !waited) break;
    const auto size = ::recv(socket_.fd, sink.data(), sink.size(), 0);
    if (size == 0 || (size < 0 && !would_block(errno))) break;
    if (size < 0) socket_.read.ready = false;
    if (size > 0) dropped += static_cast<std::size_t>(size);
  }
  close();
}

}  // namespace gitops::proxy
