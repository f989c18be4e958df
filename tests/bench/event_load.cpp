#include "bench/event_load.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace gitops::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kDrainLimit = std::chrono::seconds(30);
constexpr int kAcknowledged = 200;
constexpr int kDeferred = 429;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int connect_to(std::uint16_t port, int flags) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("connect");
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (flags != 0 && ::ioctl(fd, FIONBIO, &on) != 0) fail("ioctl");
  return fd;
}

// A response whose head and body are complete: its status and size. Nothing when bytes are missing.
struct Response {
  int status = 0;
  std::size_t body_at = 0;
  std::size_t size = 0;
};
std::optional<Response> response_in(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  Response response{.body_at = end + 4};
  std::from_chars(text.data() + 9, text.data() + 12, response.status);
  std::size_t length = 0;
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const auto at = text.find(kLength);
  if (at != std::string_view::npos && at < end) {
    std::from_chars(text.data() + at + kLength.size(), text.data() + end, length);
  }
  response.size = response.body_at + length;
  if (text.size() < response.size) return std::nullopt;
  return response;
}

std::string head_of(const EventPool::Post& post, const std::string& token) {
  const auto sequence = std::to_string(post.sequence);
  std::string head;
  head.reserve(400);
  head += "POST /2.0/api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ";
  head += token;
  head +=
      "\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nX-Event-Id: "
      "7d1c3a52-0b6e-4b7e-9a43-0f5c/application/";
  head += sequence;
  head += "/5f2a9c0b7d1e4386\r\nX-Event-Sequence: ";
  head += sequence;
  head += "\r\nContent-Length: ";
  head += std::to_string(post.body.size());
  head += "\r\n\r\n";
  return head;
}

}  // namespace

double EventLoad::Outcome::quantile(double share) const {
  if (latencies.empty()) return 0;
  auto sorted = latencies;
  const auto at = std::min(sorted.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(sorted.size())));
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(at));
  return sorted[at];
}

// One run: its connections, and what they do.
class EventLoad::Run {
 public:
  Run(EventPool& pool, const Target& target) : pool_(pool), target_(target) {
    poll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (poll_ < 0) fail("epoll");
    outcome_.runtimes.resize(target.tokens.size());
  }
  ~Run() {
    for (const auto& connection : connections_) ::close(connection.fd);
    ::close(poll_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Outcome closed(std::size_t in_flight, Clock::duration duration) {
    while (connections_.size() < in_flight) open_connection();
    begin();
    const auto end = began_ + duration;
    keep_sending_ = true;
    for (auto& connection : connections_) send(connection, pool_.next(), Clock::now());
    while (Clock::now() < end) step(10);
    keep_sending_ = false;
    return finish();
  }

  Outcome open(double rate, std::size_t max_in_flight, Clock::duration duration,
               const std::function<std::size_t()>& next,
               const std::function<void(const Outcome&)>& each_second) {
    begin();
    const auto end = began_ + duration;
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1.0 / rate));
    auto due = began_;
    auto report = began_ + std::chrono::seconds(1);
    while (Clock::now() < end) {
      for (auto now = Clock::now(); due <= now && due < end; due += interval) {
        if (idle_.empty() && connections_.size() >= max_in_flight) {
          ++outcome_.unsent;
          continue;
        }
        send(take_idle(), next ? pool_.next_of(next()) : pool_.next(), due);
      }
      step(1);
      if (each_second && Clock::now() >= report) {
        outcome_.seconds = seconds_of(Clock::now() - began_);
        each_second(outcome_);
        report += std::chrono::seconds(1);
      }
    }
    return finish();
  }

 private:
  struct Connection {
    int fd = -1;
    std::string head;
    std::string_view body;
    std::size_t sent = 0;  // of head and body
    std::string received;
    std::size_t runtime = 0;
    Clock::time_point due;
    bool is_busy = false;
    bool is_reused = false;
    bool waits_for_room = false;
  };

  Connection& open_connection() {
    auto& connection = connections_.emplace_back();
    connect(connection);
    return connection;
  }
  void connect(Connection& connection) {
    connection.fd = connect_to(target_.port, 1);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    if (::epoll_ctl(poll_, EPOLL_CTL_ADD, connection.fd, &event) != 0) fail("epoll");
  }
  Connection& take_idle() {
    if (idle_.empty()) return open_connection();
    auto* connection = idle_.back();
    idle_.pop_back();
    return *connection;
  }

  void begin() { began_ = Clock::now(); }

  void send(Connection& connection, const EventPool::Post& post, Clock::time_point due) {
    connection.runtime = pool_.runtime_of(post.application);
    connection.head = head_of(post, target_.tokens.at(connection.runtime));
    connection.body = post.body;
    connection.sent = 0;
    connection.due = due;
    connection.is_busy = true;
    ++in_flight_;
    write(connection);
  }

  void write(Connection& connection) {
    const auto whole = connection.head.size() + connection.body.size();
    while (connection.sent < whole) {
      const std::string_view head = std::string_view(connection.head)
                                        .substr(std::min(connection.sent, connection.head.size()));
      const std::string_view body = connection.body.substr(
          connection.sent - std::min(connection.sent, connection.head.size()));
      std::array<iovec, 2> parts{{{const_cast<char*>(head.data()), head.size()},
                                  {const_cast<char*>(body.data()), body.size()}}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      const auto size = ::sendmsg(connection.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) break;
      if (size < 0) return lose(connection);
      connection.sent += static_cast<std::size_t>(size);
    }
    const bool waits = connection.sent < whole;
    if (waits == connection.waits_for_room) return;
    connection.waits_for_room = waits;
    epoll_event event{.events = EPOLLIN | (waits ? EPOLLOUT : 0U), .data = {.ptr = &connection}};
    ::epoll_ctl(poll_, EPOLL_CTL_MOD, connection.fd, &event);
  }

  void step(int timeout_ms) {
    std::array<epoll_event, 256> events{};
    const int count =
        ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      if ((event.events & EPOLLOUT) != 0 && connection.is_busy) write(connection);
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(connection);
    }
  }

  void read(Connection& connection) {
    std::array<char, 4096> block;
    const auto size = ::recv(connection.fd, block.data(), block.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return lose(connection);
    connection.received.append(block.data(), static_cast<std::size_t>(size));
    const auto response = response_in(connection.received);
    if (!response) return;
    connection.received.erase(0, response->size);
    count(connection, response->status);
    end(connection);
  }

  void count(const Connection& connection, int status) {
    const auto waited = seconds_of(Clock::now() - connection.due);
    for (auto* counts : {&outcome_.all, &outcome_.runtimes.at(connection.runtime)}) {
      if (status == kAcknowledged) {
        ++counts->acknowledged;
        counts->longest = std::max(counts->longest, waited);
      } else {
        ++(status == kDeferred ? counts->deferred : counts->failed);
      }
    }
    if (status != kAcknowledged) return;
    outcome_.latencies.push_back(waited);
    outcome_.bytes += connection.body.size();
  }

  void end(Connection& connection) {
    connection.is_busy = false;
    connection.is_reused = true;
    --in_flight_;
    if (keep_sending_) {
      send(connection, pool_.next(), Clock::now());
    } else {
      idle_.push_back(&connection);
    }
  }

  // A server may close an idle connection at the moment at which it is used again. Then the post is sent again, as
  // every HTTP client does.
  void lose(Connection& connection) {
    const bool was_busy = connection.is_busy;
    const bool was_idle = connection.is_reused && connection.received.empty();
    ::close(connection.fd);
    connection.received.clear();
    connection.is_reused = false;
    connection.waits_for_room = false;
    connect(connection);
    if (!was_busy) return;
    if (was_idle) {
      connection.sent = 0;
      return write(connection);
    }
    count(connection, 0);
    end(connection);
  }

  // Waits for the posts in flight, which count.
  Outcome finish() {
    const auto give_up = Clock::now() + kDrainLimit;
    while (in_flight_ > 0 && Clock::now() < give_up) step(10);
    outcome_.all.failed += in_flight_;
    outcome_.seconds = seconds_of(Clock::now() - began_);
    return std::move(outcome_);
  }

  EventPool& pool_;
  const Target& target_;
  int poll_ = -1;
  std::deque<Connection> connections_;
  std::vector<Connection*> idle_;
  std::size_t in_flight_ = 0;
  bool keep_sending_ = false;
  Clock::time_point began_;
  Outcome outcome_;
};

EventLoad::Outcome EventLoad::run_closed(std::size_t in_flight,
                                         std::chrono::milliseconds duration) {
  return Run(pool_, target_).closed(in_flight, duration);
}

EventLoad::Outcome EventLoad::run_open(double rate, std::size_t max_in_flight,
                                       std::chrono::milliseconds duration) {
  return run_open(rate, max_in_flight, duration, {}, {});
}

EventLoad::Outcome EventLoad::run_open(double rate, std::size_t max_in_flight,
                                       std::chrono::milliseconds duration,
                                       const std::function<std::size_t()>& next,
                                       const std::function<void(const Outcome&)>& each_second) {
  return Run(pool_, target_).open(rate, max_in_flight, duration, next, each_second);
}

QueryConnection::QueryConnection(std::uint16_t port, std::string token)
    : port_(port), token_(std::move(token)) {}

QueryConnection::~QueryConnection() {
  if (socket_ >= 0) ::close(socket_);
}

std::string QueryConnection::ask(const std::string& query) {
  if (socket_ < 0) socket_ = connect_to(port_, 0);
  const auto request =
      "POST /2.0/api/graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: " + token_ +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(query.size()) +
      "\r\n\r\n" + query;
  if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    fail("query");
  }
  std::string received;
  std::array<char, 64 * 1024> block;
  while (true) {
    const auto size = ::recv(socket_, block.data(), block.size(), 0);
    if (size <= 0) fail("query");
    received.append(block.data(), static_cast<std::size_t>(size));
    const auto response = response_in(received);
    if (!response) continue;
    auto body = received.substr(response->body_at, response->size - response->body_at);
    if (response->status != kAcknowledged || body.contains(R"("errors":[{)")) {
      throw std::runtime_error("query: " + body.substr(0, 1'000));
    }
    return body;
  }
}

}  // namespace gitops::bench
