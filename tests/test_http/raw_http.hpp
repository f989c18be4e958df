#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// HTTP by plain blocking sockets, for tests of proxies: shares no code with what is tested, sends
// exactly the bytes it is told to, and keeps exactly what came.
namespace gitops::test {

// A response as it came. `status` 0: none.
struct RawResponse {
  int status = 0;
  std::string head;  // with its blank line
  std::string body;  // decoded from chunks
  bool chunked = false;
  bool complete = false;  // by its length or last chunk, or by the end of the connection

  // The value of a field; nothing when there is none.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// One TCP connection to 127.0.0.1. Every wait ends after the patience; throws only when it cannot
// connect.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port,
                     std::chrono::milliseconds patience = std::chrono::seconds(10));
  explicit RawSocket(int descriptor) : fd_(descriptor) {}
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket();

  // False when the other side takes no more.
  bool send(std::string_view bytes);
  void end_sending();
  void reset();  // closes so that the other side gets a RST

  // What comes next, at least a byte; empty at the end, after a reset, or when the time is up.
  std::string read_some(std::size_t limit = 65536);
  std::string read_until(std::string_view mark);
  std::string read_exactly(std::size_t size);
  std::string read_to_end();
  // The next response that is not interim; `to_head`: the request was HEAD.
  RawResponse read_response(bool to_head = false);
  // True when the other side has closed (waits for it).
  bool closed();
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  // True when the end was read.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  bool fill();
  std::string take(std::size_t size);

  int fd_ = -1;
  std::chrono::milliseconds patience_{10'000};
  std::string pending_;
  bool ended_ = false;
  bool timed_out_ = false;
};

// Sends the bytes on a connection of their own and reads one response.
RawResponse raw_call(std::uint16_t port, std::string_view bytes);

// A request as an upstream got it.
struct RecordedRequest {
  std::string head;  // request line and fields, without the blank line
  std::string body;  // decoded from chunks
  bool chunked = false;
  bool complete = true;        // false: the connection ended within
  std::size_t connection = 0;  // counted from 0
  [[nodiscard]] std::string target() const;
  [[nodiscard]] std::string method() const;
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// A server that records raw requests and answers as it is told; a thread per connection.
class RecordingUpstream {
 public:
  // Answers on the socket; false closes the connection. The default sends 200 with the upstream's
  // name as its body.
  using Answer = std::function<bool(const RecordedRequest& request, RawSocket& socket)>;

  explicit RecordingUpstream(std::string name, Answer answer = {}, std::uint16_t port = 0,
                             std::string address = "127.0.0.1");
  ~RecordingUpstream();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<RecordedRequest> requests() const;
  [[nodiscard]] std::size_t connections() const;
  void forget();
  // From now on requests whose head holds `part` are answered before their body is read.
  void answer_early(std::string part);
  // Ends all connections; new ones are accepted.
  void cut();
  // Sends a whole response with this body.
  static bool reply(RawSocket& socket, std::string_view body, std::string_view more_fields = {},
                    std::string_view status = "200 OK");

 private:
  void accept();
  void serve(RawSocket socket, std::size_t number);

  std::string name_;
  Answer answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<RecordedRequest> requests_;
  std::string early_;
  std::size_t accepted_ = 0;
  bool stopping_ = false;
  std::map<std::size_t, int> live_;              // descriptors
  std::map<std::size_t, std::jthread> threads_;  // those that ended leave with the next one
  std::jthread acceptor_;
};

// A name server on a UDP port of 127.0.0.1 that knows A records and nothing else.
class NameServer {
 public:
  explicit NameServer(std::map<std::string, std::string> addresses);
  ~NameServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Names that were asked for, in order.
  [[nodiscard]] std::vector<std::string> asked() const;

 private:
  void serve();
  std::map<std::string, std::string> addresses_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::jthread thread_;
};

}  // namespace gitops::test
