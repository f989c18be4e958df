#include "common/net/socket_channel.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>

#include "common/net/more_follows.hpp"

namespace gitops::net {
namespace {

constexpr std::size_t kMaxParts = 18;
constexpr std::size_t kSmallWrite = 4 * 1024;

Error error_of(int number) {
  std::string text = std::generic_category().message(number);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] | 0x20);
  return {.code = ErrorCode::unavailable,
          .message = std::move(text),
          .reason = number == ECONNREFUSED ? std::string(kConnectionRefused) : std::string()};
}

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

// Joins small parts: copying them costs less than a vectored write.
ssize_t send_parts(int descriptor, std::span<const asio::const_buffer> buffers) {
  const int flags = MSG_NOSIGNAL | (MoreFollows::is_set() ? MSG_MORE : 0);
  if (buffers.size() == 1) {
    return ::send(descriptor, buffers[0].data(), buffers[0].size(), flags);
  }
  const std::size_t size = asio::buffer_size(buffers);
  if (size <= kSmallWrite) {
    std::array<char, kSmallWrite> all;
    std::size_t at = 0;
    for (const auto& buffer : buffers) {
      if (buffer.size() == 0) continue;
      std::memcpy(all.data() + at, buffer.data(), buffer.size());
      at += buffer.size();
    }
    return ::send(descriptor, all.data(), size, flags);
  }
  std::array<iovec, kMaxParts> parts;
  std::size_t count = 0;
  for (const auto& buffer : buffers) {
    if (buffer.size() == 0 || count == parts.size()) continue;
    parts[count++] = {.iov_base = const_cast<void*>(buffer.data()), .iov_len = buffer.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(descriptor, &message, flags);
}

}  // namespace

SocketChannel::SocketChannel(Reactor& reactor, int descriptor) : Channel(reactor, socket_) {
  socket_.fd = descriptor;
  reactor.poller.add(socket_);
}

SocketChannel::~SocketChannel() {
  SocketChannel::close();
}

Transfer SocketChannel::lost(int number) {
  fail_with(error_of(number));
  return {.what = Transfer::lost};
}

Transfer SocketChannel::try_read(std::span<char> room) {
  if (!is_open()) return {.what = Transfer::lost};
  const auto size = ::recv(socket_.fd, room.data(), room.size(), 0);
  if (size > 0) {
    // A short read: the socket is empty. The end of the stream must still be read, because
    // edge-triggered epoll reports it only once.
    if (static_cast<std::size_t>(size) < room.size()) socket_.read.ready = socket_.hung_up;
    return {.what = Transfer::data, .size = static_cast<std::size_t>(size)};
  }
  if (size == 0) return {.what = Transfer::end};
  if (!would_block(errno)) return lost(errno);
  socket_.read.ready = errno == EINTR;
  return {.what = Transfer::nothing};
}

Transfer SocketChannel::try_write(std::span<const asio::const_buffer> buffers) {
  if (!is_open()) return {.what = Transfer::lost};
  const auto size = send_parts(socket_.fd, buffers);
  if (size >= 0) return {.what = Transfer::data, .size = static_cast<std::size_t>(size)};
  if (!would_block(errno)) return lost(errno);
  socket_.write.ready = errno == EINTR;
  return {.what = Transfer::nothing};
}

void SocketChannel::shutdown_send() {
  if (is_open()) ::shutdown(socket_.fd, SHUT_WR);
}

void SocketChannel::close() {
  if (!is_open()) return;
  reactor().poller.remove(socket_);
  ::close(std::exchange(socket_.fd, -1));
  wake();
}

void SocketChannel::abort() {
  if (!is_open()) return;
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  close();
}

void set_tcp_options(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    ::setsockopt(descriptor, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

// Waits until a connect() in progress has completed.
Task<Result<void>> SocketChannel::finish_connect(Deadline deadline) {
  socket_.write.ready = false;
  set_write_deadline(deadline);
  while (!socket_.write.ready && !write_expired()) co_await writable();
  if (!socket_.write.ready) co_return fail(ErrorCode::timeout, "connect timed out");
  set_write_deadline(kNever);
  int number = 0;
  socklen_t size = sizeof(number);
  if (socket_.hung_up) ::getsockopt(socket_.fd, SOL_SOCKET, SO_ERROR, &number, &size);
  if (number != 0) co_return std::unexpected(error_of(number));
  co_return Result<void>{};
}

Task<Result<std::unique_ptr<Channel>>> SocketChannel::connect(
    std::span<const asio::ip::tcp::endpoint> endpoints, Deadline deadline) {
  auto& reactor = Reactor::of(co_await asio::this_coro::executor);
  Error last{.code = ErrorCode::unavailable, .message = "no address to connect to"};
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto& endpoint = endpoints[i];
    const int descriptor = ::socket(endpoint.protocol().family(),
                                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0) {
      last = error_of(errno);
      continue;
    }
    set_tcp_options(descriptor);
    const bool at_once =
        ::connect(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
    const int number = at_once ? 0 : errno;
    auto channel = std::make_unique<SocketChannel>(reactor, descriptor);
    if (at_once) co_return channel;
    if (number != EINPROGRESS) {
      last = error_of(number);
      continue;
    }
    const auto now = Clock::now();
    const auto share = deadline == kNever
                           ? kNever
                           : now + (deadline - now) / static_cast<Clock::rep>(endpoints.size() - i);
    const auto connected = co_await channel->finish_connect(share);
    if (connected) co_return channel;
    last = connected.error();
  }
  co_return std::unexpected(std::move(last));
}

}  // namespace gitops::net
