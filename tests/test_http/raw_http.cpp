#include "test_http/raw_http.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gitops::test {
namespace {

sockaddr_in local(std::uint16_t port, const std::string& address = "127.0.0.1") {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  return where;
}

std::uint16_t port_of(int fd) {
  sockaddr_in where{};
  socklen_t size = sizeof(where);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&where), &size);
  return ntohs(where.sin_port);
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<std::string> field(std::string_view head, std::string_view name) {
  auto at = head.find("\r\n");
  while (at != std::string_view::npos) {
    head.remove_prefix(at + 2);
    const auto line = head.substr(0, head.find("\r\n"));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && same_name(line.substr(0, colon), name)) {
      auto value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      return std::string(value);
    }
    at = head.find("\r\n");
  }
  return std::nullopt;
}

// Reads all chunks; false when the connection ends before the last one.
bool read_chunks(RawSocket& socket, std::string& body) {
  while (true) {
    const auto line = socket.read_until("\r\n");
    if (!line.ends_with("\r\n")) return false;
    const auto size = std::strtoull(line.c_str(), nullptr, 16);
    if (size == 0) break;
    body += socket.read_exactly(size);
    if (socket.read_exactly(2) != "\r\n") return false;
  }
  while (true) {
    const auto line = socket.read_until("\r\n");
    if (line == "\r\n") return true;
    if (!line.ends_with("\r\n")) return false;
  }
}

}  // namespace

std::optional<std::string> RawResponse::header(std::string_view name) const {
  return field(head, name);
}
std::optional<std::string> RecordedRequest::header(std::string_view name) const {
  return field(head, name);
}
std::string RecordedRequest::method() const {
  return head.substr(0, head.find(' '));
}
std::string RecordedRequest::target() const {
  const auto first = head.find(' ') + 1;
  return head.substr(first, head.find(' ', first) - first);
}

RawSocket::RawSocket(std::uint16_t port, std::chrono::milliseconds time_limit)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), time_limit_(time_limit) {
  const auto where = local(port);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0) {
    ::close(fd_);
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      time_limit_(other.time_limit_),
      pending_(std::move(other.pending_)),
      ended_(other.ended_) {}

RawSocket::~RawSocket() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawSocket::end_sending() {
  ::shutdown(fd_, SHUT_WR);
}

void RawSocket::reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  ::close(std::exchange(fd_, -1));
  ended_ = true;
}

bool RawSocket::fill() {
  if (ended_) return false;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, static_cast<int>(time_limit_.count())) <= 0) {
    timed_out_ = true;
    return false;
  }
  std::array<char, 65536> buffer;
  const auto size = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (size <= 0) {
    ended_ = true;
    return false;
  }
  pending_.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

std::string RawSocket::take(std::size_t size) {
  size = std::min(size, pending_.size());
  std::string out = pending_.substr(0, size);
  pending_.erase(0, size);
  return out;
}

std::string RawSocket::read_some(std::size_t limit) {
  if (pending_.empty()) fill();
  return take(limit);
}

std::string RawSocket::read_until(std::string_view mark) {
  std::size_t at = 0;
  while ((at = pending_.find(mark)) == std::string::npos) {
    if (!fill()) return take(pending_.size());
  }
  return take(at + mark.size());
}

std::string RawSocket::read_exactly(std::size_t size) {
  while (pending_.size() < size) {
    if (!fill()) break;
  }
  return take(size);
}

std::string RawSocket::read_to_end() {
  while (fill()) {
  }
  return take(pending_.size());
}

RawResponse RawSocket::read_response(bool to_head) {
  RawResponse response;
  do {
    response = {};
    response.head = read_until("\r\n\r\n");
    if (!response.head.ends_with("\r\n\r\n") || response.head.size() < 12) return response;
    response.status = std::atoi(response.head.c_str() + 9);
  } while (response.status >= 100 && response.status < 200 && response.status != 101);
  response.complete = true;
  if (to_head || response.status == 204 || response.status == 304 || response.status == 101) {
    return response;
  }
  if (const auto coding = response.header("Transfer-Encoding"); coding) {
    response.chunked = true;
    response.complete = read_chunks(*this, response.body);
  } else if (const auto length = response.header("Content-Length"); length) {
    const auto size = std::strtoull(length->c_str(), nullptr, 10);
    response.body = read_exactly(size);
    response.complete = response.body.size() == size;
  } else {
    response.body = read_to_end();
  }
  return response;
}

bool RawSocket::closed() {
  while (!ended_ && !timed_out_) fill();
  return ended_;
}

RawResponse raw_call(std::uint16_t port, std::string_view bytes) {
  RawSocket socket(port);
  socket.send(bytes);
  return socket.read_response(bytes.starts_with("HEAD "));
}

RecordingUpstream::RecordingUpstream(std::string name, Answer answer, std::uint16_t port,
                                     std::string address)
    : name_(std::move(name)),
      answer_(std::move(answer)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const auto where = local(port, address);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0 ||
      ::listen(listener_, 128) != 0) {
    throw std::runtime_error("cannot listen on port " + std::to_string(port));
  }
  port_ = port_of(listener_);
  acceptor_ = std::jthread([this] { accept(); });
}

RecordingUpstream::~RecordingUpstream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  cut();
  threads_.clear();
}

void RecordingUpstream::cut() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, fd] : live_) ::shutdown(fd, SHUT_RDWR);
}

std::vector<RecordedRequest> RecordingUpstream::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t RecordingUpstream::connections() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

void RecordingUpstream::answer_early(std::string part) {
  const std::lock_guard lock(mutex_);
  early_ = std::move(part);
}

void RecordingUpstream::forget() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
}

bool RecordingUpstream::reply(RawSocket& socket, std::string_view body,
                              std::string_view more_fields, std::string_view status) {
  std::string bytes = "HTTP/1.1 " + std::string(status) + "\r\n";
  bytes.append(more_fields);
  bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  bytes.append(body);
  return socket.send(bytes);
}

void RecordingUpstream::accept() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      const std::lock_guard lock(mutex_);
      if (stopping_ || errno == EINVAL) return;
      continue;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::lock_guard lock(mutex_);
    std::erase_if(threads_, [this](const auto& item) { return !live_.contains(item.first); });
    const auto number = accepted_++;
    live_[number] = fd;
    threads_.emplace(number, [this, number, socket = RawSocket(fd)]() mutable {
      serve(std::move(socket), number);
    });
  }
}

void RecordingUpstream::serve(RawSocket socket, std::size_t number) {
  while (true) {
    RecordedRequest request;
    request.connection = number;
    request.head = socket.read_until("\r\n\r\n");
    if (!request.head.ends_with("\r\n\r\n")) {
      if (socket.ended()) break;
      continue;
    }
    request.head.resize(request.head.size() - 4);
    bool early = false;
    {
      const std::lock_guard lock(mutex_);
      early = !early_.empty() && request.head.contains(early_);
    }
    if (early) {
      if (!answer_ || !answer_(request, socket)) break;
      continue;
    }
    if (request.header("Transfer-Encoding")) {
      request.chunked = true;
      request.complete = read_chunks(socket, request.body);
    } else if (const auto length = request.header("Content-Length"); length) {
      const auto size = std::strtoull(length->c_str(), nullptr, 10);
      request.body = socket.read_exactly(size);
      request.complete = request.body.size() == size;
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    if (!request.complete) break;
    const bool again =
        answer_ ? answer_(request, socket) : reply(socket, name_, "X-Upstream: " + name_ + "\r\n");
    if (!again) break;
  }
  const std::lock_guard lock(mutex_);
  live_.erase(number);
}

NameServer::NameServer(std::map<std::string, std::string> addresses)
    : addresses_(std::move(addresses)), fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  const auto where = local(0);
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0) {
    throw std::runtime_error("cannot bind a UDP port");
  }
  port_ = port_of(fd_);
  thread_ = std::jthread([this] { serve(); });
}

NameServer::~NameServer() {
  ::shutdown(fd_, SHUT_RDWR);
  // shutdown() does not wake a thread that reads a UDP socket; a datagram does.
  const auto where = local(port_);
  const int waker = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::sendto(waker, "", 0, 0, reinterpret_cast<const sockaddr*>(&where), sizeof(where));
  ::close(waker);
  thread_.join();
  ::close(fd_);
}

std::vector<std::string> NameServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void NameServer::serve() {
  while (true) {
    std::array<unsigned char, 1500> packet;
    sockaddr_in from{};
    socklen_t size_of_from = sizeof(from);
    const auto size = ::recvfrom(fd_, packet.data(), packet.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &size_of_from);
    if (size < 13) return;
    std::string name;
    std::size_t at = 12;
    while (at < static_cast<std::size_t>(size) && packet[at] != 0) {
      const std::size_t length = packet[at];
      if (!name.empty()) name += '.';
      name.append(reinterpret_cast<const char*>(&packet[at + 1]), length);
      at += length + 1;
    }
    const std::size_t question_end = at + 5;
    if (question_end > static_cast<std::size_t>(size)) continue;
    const bool is_a = packet[at + 2] == 1;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(name);
    }
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto known = addresses_.find(name);
    std::string answer(reinterpret_cast<const char*>(packet.data()), question_end);
    answer[2] = static_cast<char>(0x81);
    answer[3] = static_cast<char>(known == addresses_.end() ? 0x83 : 0x80);
    answer[6] = answer[7] = answer[8] = answer[9] = answer[10] = answer[11] = 0;
    if (known != addresses_.end() && is_a) {
      answer[7] = 1;
      in_addr address{};
      ::inet_pton(AF_INET, known->second.c_str(), &address);
      answer.append("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04", 12);
      answer.append(reinterpret_cast<const char*>(&address), 4);
    }
    ::sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from),
             size_of_from);
  }
}

}  // namespace gitops::test
