#include "common/net/poller.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace gitops::net {
namespace {

constexpr int kMaxRounds = 8;  // before other work of the loop runs
// Number of events by which a socket, and later its waiter, is prefetched. With a thousand
// connections neither is in the cache, and memory is read while other sockets are served.
constexpr std::size_t kSocketAhead = 4;
constexpr std::size_t kWaiterAhead = 1;

int new_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return fd;
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

// Collects and delivers events. Under load, more sockets are ready by the end of a batch; polling
// again here saves a turn of the loop for each batch.
void Poller::collect() {
  for (int round = 0; round < kMaxRounds && deliver(); ++round) {
  }
}

void Poller::fetch_ahead(std::size_t i) const {
  if (i + kSocketAhead < event_count_) __builtin_prefetch(events_[i + kSocketAhead].data.ptr);
  if (i + kWaiterAhead >= event_count_) return;
  const auto* socket = static_cast<const PolledSocket*>(events_[i + kWaiterAhead].data.ptr);
  if (socket != nullptr && socket->read.waker != nullptr) socket->read.waker->prefetch();
}

// Delivers the events. Returns false if no socket was ready.
bool Poller::deliver() {
  const int count =
      ::epoll_wait(epoll_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  if (count <= 0) return false;
  event_count_ = static_cast<std::size_t>(count);
  now_ = Clock::now();
  for (std::size_t i = 0; i < std::min(kSocketAhead, event_count_); ++i) {
    __builtin_prefetch(events_[i].data.ptr);
  }
  for (std::size_t i = 0; i < event_count_; ++i) {
    fetch_ahead(i);
    if (events_[i].data.ptr == nullptr) continue;
    const auto what = events_[i].events;
    const bool broken = (what & (EPOLLHUP | EPOLLERR)) != 0;
    const bool readable = broken || (what & (EPOLLIN | EPOLLRDHUP)) != 0;
    const bool writable = broken || (what & EPOLLOUT) != 0;
    auto* socket = static_cast<PolledSocket*>(events_[i].data.ptr);
    if (broken || (what & EPOLLRDHUP) != 0) socket->hung_up = true;
    // Marks both directions ready before resuming any waiter, and resumes only coroutines that
    // waited before: the first one may use both directions and wait again.
    Waker* const reader = readable ? socket->read.waker : nullptr;
    Waker* const writer = writable ? socket->write.waker : nullptr;
    socket->read.ready |= readable;
    socket->write.ready |= writable;
    if (reader != nullptr) reader->wake();
    if (writer == nullptr || writer == reader) continue;
    // The resumed coroutine may have removed the socket.
    const bool still_waits = events_[i].data.ptr != nullptr && socket->write.waker == writer;
    if (still_waits) writer->wake();
  }
  event_count_ = 0;
  return true;
}

}  // namespace gitops::net
