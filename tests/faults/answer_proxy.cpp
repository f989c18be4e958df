#include "faults/answer_proxy.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace gitops::test {
namespace {

constexpr int kBacklog = 64;
constexpr int kPollMs = 50;

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  [[nodiscard]] int family() const { return bytes.ss_family; }
};

SocketAddress socket_address(const AnswerProxy::Address& address) {
  SocketAddress out;
  if (const auto* port = std::get_if<std::uint16_t>(&address)) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(*port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&out.bytes, &in, sizeof(in));
    out.size = sizeof(in);
    return out;
  }
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  const auto path = std::get<std::filesystem::path>(address).string();
  if (path.size() >= sizeof(un.sun_path)) throw std::runtime_error("too long: " + path);
  std::memcpy(un.sun_path, path.data(), path.size());
  std::memcpy(&out.bytes, &un, sizeof(un));
  out.size = sizeof(un);
  return out;
}

int connected(const AnswerProxy::Address& server) {
  const auto address = socket_address(server);
  const int socket = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    std::cerr << "the proxy has no socket to its server: " << std::strerror(errno) << '\n';
    return -1;
  }
  if (::connect(socket, address.get(), address.size) == 0) return socket;
  ::close(socket);
  return -1;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

// The two sockets of a connection and the two threads that pass its bytes.
class AnswerProxy::Link {
 public:
  Link(AnswerProxy& proxy, int client_socket, int server_socket)
      : client(client_socket),
        server(server_socket),
        requests_([this, &proxy] {
          proxy.pass_requests(*this);
          --passing_;
        }),
        answers_([this, &proxy] {
          proxy.pass_answers(*this);
          --passing_;
        }) {}
  ~Link() {
    end();
    requests_.join();
    answers_.join();
    ::close(client);
    ::close(server);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  void end() const {
    ::shutdown(client, SHUT_RDWR);
    ::shutdown(server, SHUT_RDWR);
  }

  [[nodiscard]] bool has_ended() const { return passing_ == 0; }

  const int client;
  const int server;

 private:
  std::atomic<int> passing_ = 2;
  std::jthread requests_;
  std::jthread answers_;
};

AnswerProxy::AnswerProxy(const Address& address, std::string answer) : answer_(std::move(answer)) {
  const auto at = socket_address(address);
  listener_ = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener_, at.get(), at.size) != 0 || ::listen(listener_, kBacklog) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  if (std::holds_alternative<std::uint16_t>(address)) {
    sockaddr_in in{};
    socklen_t size = sizeof(in);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&in), &size);
    port_ = ntohs(in.sin_port);
  }
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
}

AnswerProxy::~AnswerProxy() {
  acceptor_.request_stop();
  acceptor_.join();
  links_.clear();
  ::close(listener_);
}

void AnswerProxy::forward_to(Address server) {
  const std::lock_guard lock(mutex_);
  server_ = std::move(server);
}

void AnswerProxy::cut() {
  const std::lock_guard lock(mutex_);
  for (const auto& link : links_) link->end();
}

void AnswerProxy::forget_ended() {
  std::erase_if(links_, [](const auto& link) { return link->has_ended(); });
}

void AnswerProxy::accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      const std::lock_guard lock(mutex_);
      forget_ended();
    }
    pollfd waits{.fd = listener_, .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, kPollMs) <= 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::lock_guard lock(mutex_);
    const int server = connected(server_);
    if (server < 0) {
      ::close(client);
      continue;
    }
    links_.push_back(std::make_unique<Link>(*this, client, server));
  }
}

void AnswerProxy::pass_requests(Link& link) {
  std::array<char, 64 * 1024> buffer{};
  while (true) {
    const auto size = ::recv(link.client, buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    if (!send_all(link.server, {buffer.data(), static_cast<std::size_t>(size)})) break;
  }
  link.end();
}

void AnswerProxy::pass_answers(Link& link) {
  std::array<char, 64 * 1024> buffer{};
  while (true) {
    const auto size = ::recv(link.server, buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
    if (is_lost(bytes) || !send_all(link.client, bytes)) break;
  }
  link.end();
}

bool AnswerProxy::is_lost(std::string_view bytes) {
  if (!bytes.contains(answer_)) return false;
  auto left = to_lose_.load();
  while (left > 0) {
    if (!to_lose_.compare_exchange_weak(left, left - 1)) continue;
    ++lost_;
    return true;
  }
  ++forwarded_;
  return false;
}

}  // namespace gitops::test
