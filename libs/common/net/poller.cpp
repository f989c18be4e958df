#include "common/net/poller.hpp"

#include <cerrno>

#include <system_error>

namespace gitops::net {
namespace {

constexpr int kMaxRounds = 8;  // before other work on the loop gets its turn

int new_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return fd;
}

void tell(Direction& direction) {
  direction.ready = true;
  if (direction.waker != nullptr) direction.waker->wake();
}

}  // namespace

Poller::Poller(const Executor& executor) : epoll_(executor, new_epoll()) {}

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

// Under load, further sockets have become ready by now. Asking for them here saves a round of the
// loop for each.
void Poller::collect() {
  for (int round = 0; round < kMaxRounds && deliver(); ++round) {
  }
}

// False when no socket was ready.
bool Poller::deliver() {
  const int count =
      ::epoll_wait(epoll_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  if (count <= 0) return false;
  event_count_ = static_cast<std::size_t>(count);
  now_ = Clock::now();
  for (std::size_t i = 0; i < event_count_; ++i) {
    const auto what = events_[i].events;
    const auto socket_of = [this, i] { return static_cast<PolledSocket*>(events_[i].data.ptr); };
    const bool broken = (what & (EPOLLHUP | EPOLLERR)) != 0;
    const bool readable = broken || (what & (EPOLLIN | EPOLLRDHUP)) != 0;
    const bool writable = broken || (what & EPOLLOUT) != 0;
    if (auto* socket = socket_of()) {
      if (broken || (what & EPOLLRDHUP) != 0) socket->hung_up = true;
      if (writable) socket->write.ready = true;
      if (readable) tell(socket->read);
    }
    // Whoever was resumed may have removed the socket.
    if (auto* socket = socket_of(); socket != nullptr && writable) tell(socket->write);
  }
  event_count_ = 0;
  return true;
}

}  // namespace gitops::net
