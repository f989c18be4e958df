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

// HTTP over plain blocking sockets, for tests of proxies. Shares no code with the code under test,
// sends exactly the given bytes and keeps exactly the received ones.
namespace gitops::test {

// A response as received. `status` 0: no response.
struct RawResponse {
  int status = 0;
  std::string head;  // including the blank line
  std::string body;  // decoded from chunks
  bool chunked = false;
  bool complete = false;  // as its length, its last chunk or the end of the connection says

  // The value of a field; nullopt when it is absent.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// One TCP connection to 127.0.0.1. Every wait ends after `time_limit`. Throws only when it cannot
// connect.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port,
                     std::chrono::milliseconds time_limit = std::chrono::seconds(10));
  explicit RawSocket(int descriptor) : fd_(descriptor) {}
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket();

  // False when the peer accepts no more bytes.
  bool send(std::string_view bytes);
  void end_sending();
  void reset();  // closes with a RST

  // The next bytes, at least one; empty at the end, after a reset, or after the time limit.
  std::string read_some(std::size_t limit = 65536);
  std::string read_until(std::string_view mark);
  std::string read_exactly(std::size_t size);
  std::string read_to_end();
  // The next final response; `to_head`: the request was HEAD.
  RawResponse read_response(bool to_head = false);
  // Waits for the peer to close; false after the time limit.
  bool closed();
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  // True after a read found the end of the connection.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  bool fill();
  std::string take(std::size_t size);

  int fd_ = -1;
  std::chrono::milliseconds time_limit_{10'000};
  std::string pending_;
  bool ended_ = false;
  bool timed_out_ = false;
};

// Sends the bytes on a new connection and reads one response.
RawResponse raw_call(std::uint16_t port, std::string_view bytes);

// A request as received by an upstream.
struct RecordedRequest {
  std::string head;  // request line and fields, without the blank line
  std::string body;  // decoded from chunks
  bool chunked = false;
  bool complete = true;        // false: the connection ended before its end
  std::size_t connection = 0;  // counted from 0
  [[nodiscard]] std::string target() const;
  [[nodiscard]] std::string method() const;
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// A server that records raw requests and answers through a callback; one thread per connection.
class RecordingUpstream {
 public:
  // Writes the answer to the socket; false closes the connection. The default is 200 with the
  // upstream's name as its body.
  using Answer = std::function<bool(const RecordedRequest& request, RawSocket& socket)>;

  explicit RecordingUpstream(std::string name, Answer answer = {}, std::uint16_t port = 0,
                             std::string address = "127.0.0.1");
  ~RecordingUpstream();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::vector<RecordedRequest> requests() const;
  [[nodiscard]] std::size_t connections() const;
  void forget();
  // Answers requests whose head contains `part` before it reads their body.
  void answer_early(std::string part);
  // Ends all connections; still accepts new ones.
  void cut();
  // Sends a complete response with this body.
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
  std::map<std::size_t, std::jthread> threads_;  // ended ones are removed with the next connection
  std::jthread acceptor_;
};

// A name server on a UDP port of 127.0.0.1. Serves A records only.
class NameServer {
 public:
  explicit NameServer(std::map<std::string, std::string> addresses);
  ~NameServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The queried names, in order.
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
