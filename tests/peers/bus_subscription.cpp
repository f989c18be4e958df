#include "peers/bus_subscription.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "common/core/race.hpp"

namespace gitops::test {
namespace {

using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

constexpr std::string_view kEndOfLine = "\r\n";

}  // namespace

struct BusSubscription::Connection {
  explicit Connection(const Executor& executor) : stream(Socket(executor), context) {}

  template <class Stream>
  Task<std::string> read_line(Stream& from) {
    const auto end =
        co_await asio::async_read_until(from, asio::dynamic_buffer(received), kEndOfLine, use_task);
    auto text = received.substr(0, end - kEndOfLine.size());
    received.erase(0, end);
    co_return text;
  }

  Task<std::string> read_payload(std::size_t size) {
    const auto whole = size + kEndOfLine.size();
    if (received.size() < whole) {
      co_await asio::async_read(stream, asio::dynamic_buffer(received),
                                asio::transfer_at_least(whole - received.size()), use_task);
    }
    auto payload = received.substr(0, size);
    received.erase(0, whole);
    co_return payload;
  }

  Task<> send(std::string text) {
    co_await asio::async_write(stream, asio::buffer(text), use_task);
  }

  Task<Result<void>> open(int port, std::string subject) {
    co_await stream.next_layer().async_connect(
        {asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port)}, use_task);
    co_await read_line(stream.next_layer());  // the greeting is in clear text
    co_await stream.async_handshake(asio::ssl::stream_base::client, use_task);
    co_await send("CONNECT {\"verbose\":false}\r\nSUB " + subject + " 1\r\nPING\r\n");
    // The server answers in order, so the subscription is active after this answer.
    while (co_await read_line(stream) != "PONG") {
    }
    co_return Result<void>();
  }

  Task<Result<Message>> next() {
    for (;;) {
      const auto line = co_await read_line(stream);
      if (line == "PING") co_await send("PONG\r\n");
      if (line.starts_with("-ERR")) co_return fail(ErrorCode::protocol, line);
      if (!line.starts_with("MSG ")) continue;
      // MSG SUBJECT ID [REPLY] SIZE
      Message message;
      message.subject = line.substr(4, line.find(' ', 4) - 4);
      message.payload = co_await read_payload(std::stoul(line.substr(line.rfind(' ') + 1)));
      co_return message;
    }
  }

  asio::ssl::context context{asio::ssl::context::tls_client};
  asio::ssl::stream<Socket> stream;
  std::string received;
};

BusSubscription::BusSubscription(const Executor& executor)
    : connection_(std::make_unique<Connection>(executor)) {}

BusSubscription::~BusSubscription() = default;

Task<Result<void>> BusSubscription::open(int port, std::string subject, Deadline deadline) {
  co_return co_await with_timeout(deadline, connection_->open(port, std::move(subject)));
}

Task<Result<BusSubscription::Message>> BusSubscription::next(Deadline deadline) {
  co_return co_await with_timeout(deadline, connection_->next());
}

}  // namespace gitops::test
