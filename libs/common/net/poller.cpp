#include "common/net/poller.hpp"

#include <cerrno>
#include <utility>

#include <system_error>

namespace gitops::net {
namespace {

// Of the CPU's caches, fetched for that many events ahead.
constexpr std::size_t kAhead = 3;
constexpr std::size_t kSocketLines = 4;
constexpr std::size_t kUserLines = 10;
constexpr int kMaxRounds = 8;  // before others on the loop get their turn

int new_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return fd;
}

// Of many connections the next one is in no cache of the CPU.
void prefetch(const void* object, std::size_t lines) {
  constexpr std::size_t kLine = 64;
  if (object == nullptr) return;
  for (std::size_t at = 0; at < lines; ++at) {
    __builtin_prefetch(static_cast<const char*>(object) + at * kLine);
  }
}

const void* user_of(const epoll_event& event) {
  const auto* socket = static_cast<const PolledSocket*>(event.data.ptr);
  return socket == nullptr ? nullptr : socket->user;
}

void resume(Readiness& readiness) {
  if (!readiness.waiter) return;
  std::exchange(readiness.waiter, nullptr)();
}

}  // namespace

Poller::Poller(const Executor& executor) : executor_(executor), epoll_(executor, new_epoll()) {}

Poller::~Poller() {
  *alive_ = false;
}

void Poller::add(PolledSocket& socket) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &socket;
  ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, socket.fd, &event);
  socket.write.ready = true;
  ++sockets_;
  if (!armed_) arm();
}

void Poller::remove(PolledSocket& socket) {
  ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, socket.fd, nullptr);
  for (std::size_t i = 0; i < event_count_; ++i) {
    if (events_[i].data.ptr == &socket) events_[i].data.ptr = nullptr;
  }
  if (--sockets_ == 0) {
    boost::system::error_code ec;
    epoll_.cancel(ec);
  }
}

void Poller::arm() {
  armed_ = true;
  epoll_.async_wait(epoll_.wait_read, [this, alive = alive_](const boost::system::error_code& ec) {
    if (!*alive) return;
    armed_ = false;
    if (!ec) collect();
    if (*alive && sockets_ > 0 && !armed_) arm();
  });
}

// Under load the next sockets are ready by now: asking for them here saves what the loop does for
// each wait.
void Poller::collect() {
  for (int round = 0; round < kMaxRounds && deliver(); ++round) {
  }
}

// False when there was nothing.
bool Poller::deliver() {
  const int count =
      ::epoll_wait(epoll_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  if (count <= 0) return false;
  event_count_ = static_cast<std::size_t>(count);
  now_ = Clock::now();
  for (std::size_t i = 0; i < event_count_; ++i) {
    if (i + 2 * kAhead < event_count_) prefetch(events_[i + 2 * kAhead].data.ptr, kSocketLines);
    if (i + kAhead < event_count_) prefetch(user_of(events_[i + kAhead]), kUserLines);
    const auto what = events_[i].events;
    const auto socket_of = [this, i] { return static_cast<PolledSocket*>(events_[i].data.ptr); };
    if (auto* socket = socket_of()) {
      const bool broken = (what & (EPOLLHUP | EPOLLERR)) != 0;
      socket->hung_up = socket->hung_up || broken || (what & EPOLLRDHUP) != 0;
      if (broken || (what & (EPOLLIN | EPOLLRDHUP)) != 0) socket->read.ready = true;
      if (broken || (what & EPOLLOUT) != 0) socket->write.ready = true;
      if (socket->read.ready) resume(socket->read);
    }
    // The reader may have removed it.
    if (auto* socket = socket_of(); socket != nullptr && socket->write.ready) {
      resume(socket->write);
    }
  }
  event_count_ = 0;
  return true;
}

void Poller::wake(Readiness& readiness) {
  if (!readiness.waiter) return;
  asio::post(executor_, std::exchange(readiness.waiter, nullptr));
}

}  // namespace gitops::net
