#include "common/net/socket_channel.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
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
          .subcode = number == ECONNREFUSED ? kConnectionRefused : std::string_view()};
}

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

// Sends the parts. Joins small ones: copying them costs less than a vectored write.
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
    // A short read means that the socket is empty. The end of the stream must still be read,
    // because edge-triggered epoll reports it only once.
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

void SocketChannel::limit_unsent(int bytes) {
  if (is_open()) ::setsockopt(socket_.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
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

Result<std::unique_ptr<SocketChannel>> SocketChannel::begin_connect(Reactor& reactor,
                                                                    const Endpoint& endpoint,
                                                                    Waker& waker) {
  const int descriptor = ::socket(endpoint.protocol().family(),
                                  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) return std::unexpected(error_of(errno));
  set_tcp_options(descriptor);
  const bool at_once =
      ::connect(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
  const int number = at_once ? 0 : errno;
  auto channel = std::make_unique<SocketChannel>(reactor, descriptor);
  if (!at_once && number != EINPROGRESS) return std::unexpected(error_of(number));
  channel->socket_.write.ready = at_once;
  channel->socket_.write.waker = &waker;
  return channel;
}

std::optional<Result<void>> SocketChannel::connect_result() const {
  if (!socket_.write.ready) return std::nullopt;
  int number = 0;
  socklen_t size = sizeof(number);
  if (socket_.hung_up) ::getsockopt(socket_.fd, SOL_SOCKET, SO_ERROR, &number, &size);
  if (number != 0) return std::unexpected(error_of(number));
  return Result<void>{};
}

// Attempts to connect to the endpoints of one host: ConnectRace with sockets.
class SocketChannel::Attempts {
 public:
  Attempts(Reactor& reactor, std::span<const Endpoint> endpoints, Deadline deadline,
           const EndpointObserver& observer)
      : reactor_(reactor),
        endpoints_(endpoints),
        observer_(observer),
        race_(endpoints.size(), Clock::now(), deadline),
        alarm_(reactor.wheel, [this] { waker_.post(reactor_.executor); }) {}

  Task<Result<std::unique_ptr<Channel>>> run() {
    while (true) {
      const auto now = Clock::now();
      while (const auto next = race_.begin(now)) begin(*next);
      if (auto connected = take_connected(now)) co_return connected;
      // A failure has made the next attempt due.
      if (race_.next() <= now && !race_.given_up(now)) continue;
      if (auto error = race_.given_up(now)) {
        note_slow(now);
        co_return std::unexpected(std::move(*error));
      }
      alarm_.expires_at(race_.next());
      co_await waker_.wait(reactor_.executor);
    }
  }

 private:
  struct Attempt {
    std::size_t number = 0;
    std::unique_ptr<SocketChannel> channel;
  };

  void note(std::size_t number, bool works) const {
    if (observer_) observer_(endpoints_[number], works);
  }

  void note_slow(Clock::time_point now) const {
    for (const auto number : race_.slow(now)) note(number, false);
  }

  void failed(std::size_t number, Error error) {
    note(number, false);
    race_.failed(number, std::move(error));
  }

  void begin(std::size_t number) {
    auto begun = begin_connect(reactor_, endpoints_[number], waker_);
    if (begun) {
      under_way_.push_back({.number = number, .channel = std::move(*begun)});
    } else {
      failed(number, std::move(begun.error()));
    }
  }

  // Returns the first successful attempt, if any. Drops the failed ones.
  std::unique_ptr<Channel> take_connected(Clock::time_point now) {
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      auto result = it->channel->connect_result();
      if (!result) {
        ++it;
      } else if (*result) {
        note_slow(now);
        note(it->number, true);
        it->channel->socket_.write.waker = nullptr;
        return std::move(it->channel);
      } else {
        failed(it->number, std::move(result->error()));
        it = under_way_.erase(it);
      }
    }
    return nullptr;
  }

  Reactor& reactor_;
  const std::span<const Endpoint> endpoints_;
  const EndpointObserver& observer_;
  ConnectRace race_;
  Waker waker_;
  WheelTimer alarm_;
  std::vector<Attempt> under_way_;
};

Task<Result<std::unique_ptr<Channel>>> SocketChannel::connect(std::span<const Endpoint> endpoints,
                                                              Deadline deadline,
                                                              const EndpointObserver& observer) {
  Attempts attempts(Reactor::of(co_await asio::this_coro::executor), endpoints, deadline, observer);
  co_return co_await attempts.run();
}

}  // namespace gitops::net
