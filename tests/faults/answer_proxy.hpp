#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

namespace gitops::test {

// A port or a Unix socket that forwards connections to a server, and can lose the server's answers: the server has done
// what it was asked, and the client does not hear of it. Runs on threads of its own, so a test may block in a call that
// goes through it.
class AnswerProxy {
 public:
  // A port of 127.0.0.1, or the path of a Unix socket.
  using Address = std::variant<std::uint16_t, std::filesystem::path>;

  // Listens at `address`; port 0 is a free one. An answer is what the server sends with `answer` in it.
  AnswerProxy(const Address& address, std::string answer);
  ~AnswerProxy();
  AnswerProxy(const AnswerProxy&) = delete;
  AnswerProxy& operator=(const AnswerProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Sets the server of later connections.
  void forward_to(Address server);
  // Drops each of the next `count` answers, and ends its connection.
  void lose_answers(std::size_t count) { to_lose_ = count; }
  // Ends all connections.
  void cut();
  // Answers that were lost, and those that were forwarded.
  [[nodiscard]] std::size_t lost() const { return lost_; }
  [[nodiscard]] std::size_t forwarded() const { return forwarded_; }

 private:
  class Link;
  void accept(const std::stop_token& stop);
  // Forgets the connections that have ended. Call with the mutex.
  void forget_ended();
  void pass_requests(Link& link);
  void pass_answers(Link& link);
  // Returns whether the bytes are an answer to be lost.
  bool is_lost(std::string_view bytes);

  const std::string answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  Address server_ = std::uint16_t{0};
  std::list<std::unique_ptr<Link>> links_;
  std::atomic<std::size_t> to_lose_ = 0;
  std::atomic<std::size_t> lost_ = 0;
  std::atomic<std::size_t> forwarded_ = 0;
  std::jthread acceptor_;
};

}  // namespace gitops::test
