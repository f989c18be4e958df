#include "bench/tunnel_load.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gitops::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieces = 1024 * 1024;  // bytes of the file that bodies come from
constexpr std::size_t kHead = 16 * 1024;
constexpr std::size_t kDiscard = 4 * 1024 * 1024;
constexpr std::uint64_t kSmall = 4096;  // bodies of this size go out together with the head

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), "tunnel load: " + what);
}

// A file in memory, for sendfile(). It lives as long as the process.
int body_file() {
  static const int file = [] {
    const int fd = ::memfd_create("body", MFD_CLOEXEC);
    std::string bytes(kPieces, '\0');
    std::uint32_t state = 1;  // no two blocks alike, so that nothing could compress them
    for (auto& byte : bytes) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<char>(state >> 24);
    }
    if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(kPieces)) {
      fail("memfd");
    }
    return fd;
  }();
  return file;
}

void add_to(int poll, int fd, std::uint32_t events, std::uint64_t data) {
  epoll_event event{.events = events, .data = {.u64 = data}};
  if (::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll");
}

// How a connection's body goes on: bytes left, or blocked.
enum class Progress { done, blocked, ended };

Progress send_body(int fd, std::uint64_t& left) {
  while (left > 0) {
    off_t from = 0;
    const auto sent = ::sendfile(fd, body_file(), &from, std::min<std::uint64_t>(left, kPieces));
    if (sent < 0) return errno == EAGAIN ? Progress::blocked : Progress::ended;
    left -= static_cast<std::uint64_t>(sent);
  }
  return Progress::done;
}

// Reads without copying: MSG_TRUNC drops the bytes in the kernel.
Progress drop_body(int fd, std::uint64_t& left) {
  while (left > 0) {
    const auto got =
        ::recv(fd, nullptr, std::min<std::uint64_t>(left, kDiscard), MSG_TRUNC | MSG_DONTWAIT);
    if (got == 0) return Progress::ended;
    if (got < 0) return errno == EAGAIN ? Progress::blocked : Progress::ended;
    left -= static_cast<std::uint64_t>(got);
  }
  return Progress::done;
}

// The head up to the blank line, once it is there; `pending` keeps what follows.
std::string take_head(std::string& pending) {
  const auto end = pending.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  auto head = pending.substr(0, end + 4);
  pending.erase(0, end + 4);
  return head;
}

// Reads what is there into `pending`; false at the end of the connection.
bool read_head(int fd, std::string& pending) {
  std::array<char, kHead> block{};
  const auto got = ::recv(fd, block.data(), block.size(), MSG_DONTWAIT);
  if (got > 0) pending.append(block.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EAGAIN);
}

// A field's value; the name ends with a colon. Proxies write names in several ways.
std::string_view field(std::string_view head, std::string_view name) {
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  auto found = std::ranges::search(head, name, same);
  if (found.empty()) return {};
  std::string_view rest(found.end(), head.end());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest.substr(0, rest.find('\r'));
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    throw std::runtime_error("tunnel load: no length: " + std::string(text));
  }
  return value;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) continue;  // a head in an empty buffer: never for long
    if (sent < 0) fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// One connection of the upstream.
struct Served {
  std::string pending = {};
  bool uploading = false;
  std::uint64_t to_drop = 0;
  std::uint64_t to_send = 0;
  bool upgraded = false;

  // False: the connection has ended.
  bool go_on(int fd) {
    while (true) {
      if (uploading) {
        const auto now = drop_body(fd, to_drop);
        if (now != Progress::done) return now == Progress::blocked;
        uploading = false;
        send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
      if (to_send > 0) {
        const auto now = send_body(fd, to_send);
        if (now != Progress::done) return now == Progress::blocked;
      }
      const auto before = pending.size();
      if (!read_head(fd, pending)) return false;
      if (upgraded) return true;
      const auto head = take_head(pending);
      if (head.empty()) {
        if (pending.size() == before) return true;
        continue;
      }
      answer(fd, head);
    }
  }

  void answer(int fd, std::string_view head) {
    if (!field(head, "\r\nupgrade:").empty()) {
      upgraded = true;
      send_all(fd,
               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
      return;
    }
    if (head.starts_with("PUT ")) {
      uploading = true;
      to_drop = number(field(head, "\r\ncontent-length:")) - pending.size();
      pending.clear();
      return;
    }
    constexpr std::string_view kStart = "GET /bytes/";
    if (!head.starts_with(kStart)) throw std::runtime_error("tunnel load: " + std::string(head));
    const auto size = number(head.substr(kStart.size()));
    auto out = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: " +
               std::to_string(size) + "\r\n\r\n";
    if (size <= kSmall) {
      out.append(size, 'x');
    } else {
      to_send = size;
    }
    send_all(fd, out);
  }
};

}  // namespace

TunnelUpstream::TunnelUpstream() {
  body_file();
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, size) != 0 || ::listen(listener_, 4096) != 0 ||
      ::getsockname(listener_, any, &size) != 0) {
    fail("listen");
  }
  port_ = ntohs(address.sin_port);
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { serve(); });
}

TunnelUpstream::~TunnelUpstream() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_, &one, sizeof one));
  thread_.join();
  ::close(stop_);
  ::close(listener_);
}

void TunnelUpstream::serve() {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  add_to(poll, listener_, EPOLLIN, 0);
  add_to(poll, stop_, EPOLLIN, 1);
  std::map<int, Served> served;
  std::array<epoll_event, 256> events{};
  while (true) {
    const int ready = ::epoll_wait(poll, events.data(), events.size(), -1);
    for (int i = 0; i < ready; ++i) {
      const auto what = events.at(static_cast<std::size_t>(i)).data.u64;
      if (what == 1) {
        for (const auto& [fd, connection] : served) ::close(fd);
        ::close(poll);
        return;
      }
      if (what == 0) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) continue;
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        served[fd] = {};
        add_to(poll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, static_cast<unsigned>(fd));
        continue;
      }
      const int fd = static_cast<int>(what);
      if (!served[fd].go_on(fd)) {
        ::close(fd);
        served.erase(fd);
      }
    }
  }
}

struct TunnelUsers::User {
  int fd = -1;
  std::string pending = {};
  std::uint64_t to_send = 0;
  std::uint64_t to_read = 0;
  std::uint64_t size = 0;  // of the answer's body
  bool busy = false;
  bool has_head = false;
  Clock::time_point due{};  // of the request, or of the next one
};

TunnelUsers::TunnelUsers(std::uint16_t port, std::string host, int count)
    : port_(port), host_(std::move(host)), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (int i = 0; i < count; ++i) {
    users_.push_back(std::make_unique<User>());
    users_.back()->fd = connect();
  }
}

TunnelUsers::~TunnelUsers() {
  for (const auto& user : users_) ::close(user->fd);
  ::close(poll_);
}

int TunnelUsers::connect() const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

TunnelPlay TunnelUsers::play(const TunnelRequest& request, std::chrono::milliseconds time,
                             double rate) {
  const auto begin = Clock::now();
  const auto end = begin + time;
  const auto count = users_.size();
  const auto between = rate > 0
                           ? std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(static_cast<double>(count) / rate))
                           : Clock::duration::zero();
  std::string head =
      request.upload > 0 ? "PUT /upload" : "GET /bytes/" + std::to_string(request.answer);
  head += " HTTP/1.1\r\nHost: " + host_ +
          "\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\n";
  if (request.upload > 0) head += "Content-Length: " + std::to_string(request.upload) + "\r\n";
  head += "\r\n";

  TunnelPlay result;
  std::size_t busy = 0;
  const auto watch = [&](std::size_t index) {
    ::fcntl(users_[index]->fd, F_SETFL, O_NONBLOCK);
    add_to(poll_, users_[index]->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, index);
  };
  const auto ask = [&](User& user) {
    user.busy = true;
    ++busy;
    user.has_head = false;
    user.to_send = request.upload;
    user.pending = {};
    // What cannot be sent shows when the answer is read.
    static_cast<void>(::send(user.fd, head.data(), head.size(), MSG_NOSIGNAL));
  };
  const auto failed = [&](const std::string& what) {
    ++result.failed;
    result.failure = what;
    return Progress::ended;
  };
  const auto step = [&](User& user) {
    if (user.to_send > 0 && send_body(user.fd, user.to_send) == Progress::ended) {
      return failed("an upload was cut");
    }
    if (!user.has_head) {
      const bool open = read_head(user.fd, user.pending);
      const auto answer = take_head(user.pending);
      if (answer.empty()) return open ? Progress::blocked : failed("a connection ended");
      if (!answer.starts_with("HTTP/1.1 200")) return failed(answer.substr(0, answer.find('\r')));
      user.has_head = true;
      const auto size = number(field(answer, "\r\ncontent-length:"));
      user.size = size;
      user.to_read = size - user.pending.size();
      user.pending.clear();
    }
    const auto now = drop_body(user.fd, user.to_read);
    return now == Progress::ended ? failed("an answer was cut") : now;
  };

  for (std::size_t i = 0; i < count; ++i) {
    watch(i);
    users_[i]->due = begin + between * static_cast<int>(i) / static_cast<int>(count);
    if (rate == 0) ask(*users_[i]);
  }
  std::array<epoll_event, 256> events{};
  while (true) {
    auto now = Clock::now();
    auto next = end + std::chrono::hours(1);
    if (rate > 0) {
      for (const auto& user : users_) {
        if (!user->busy && user->due <= now && user->due < end) ask(*user);
        if (!user->busy && user->due < end) next = std::min(next, user->due);
      }
    }
    if (busy == 0 && next > end) break;
    const auto wait = std::max(Clock::duration::zero(), next - now);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
    const timespec limit{.tv_sec = std::min<time_t>(seconds.count(), 120),
                         .tv_nsec = (wait - seconds).count()};
    const int ready = ::epoll_pwait2(poll_, events.data(), events.size(), &limit, nullptr);
    if (ready == 0 && limit.tv_sec >= 120) {
      throw std::runtime_error("tunnel load: no answer for two minutes");
    }
    for (int i = 0; i < ready; ++i) {
      const auto index = events.at(static_cast<std::size_t>(i)).data.u64;
      auto& user = *users_[index];
      while (user.busy) {
        const auto progress = step(user);
        if (progress == Progress::blocked) break;
        user.busy = false;
        --busy;
        now = Clock::now();
        if (progress == Progress::done) {
          ++result.requests;
          result.bytes += user.size + request.upload;
          if (rate > 0) {
            result.times.push_back(
                std::chrono::duration<double, std::milli>(now - user.due).count());
          }
        } else {
          ::close(user.fd);
          user.fd = connect();
          watch(index);
        }
        if (rate > 0) {
          user.due += between;
        } else if (now < end) {
          ask(user);
        }
      }
    }
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const auto& user : users_) ::epoll_ctl(poll_, EPOLL_CTL_DEL, user->fd, nullptr);
  return result;
}

void TunnelUsers::upgrade() {
  constexpr std::size_t kAtATime = 32;
  for (std::size_t first = 0; first < users_.size(); first += kAtATime) {
    const auto end = std::min(first + kAtATime, users_.size());
    for (auto i = first; i < end; ++i) {
      send_all(users_[i]->fd, "GET /socket HTTP/1.1\r\nHost: " + host_ +
                                  "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                  "Sec-WebSocket-Version: 13\r\n\r\n");
    }
    for (auto i = first; i < end; ++i) {
      std::string answer;
      std::array<char, 4096> block{};
      while (!answer.contains("\r\n\r\n")) {
        const auto got = ::recv(users_[i]->fd, block.data(), block.size(), 0);
        if (got <= 0) fail("no WebSocket");
        answer.append(block.data(), static_cast<std::size_t>(got));
      }
      if (!answer.starts_with("HTTP/1.1 101")) throw std::runtime_error("tunnel load: " + answer);
    }
  }
}

}  // namespace gitops::bench
