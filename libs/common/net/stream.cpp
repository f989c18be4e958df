#include "common/net/stream.hpp"

#include <array>
#include <optional>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/net/tls_context.hpp"

namespace gitops::net {
namespace {

using boost::system::error_code;
namespace error = asio::error;

// More bytes written without ever waiting than this: let others on the loop run.
constexpr std::size_t kYieldAfter = 256 * 1024;
// One TLS record.
constexpr std::size_t kFlatten = 16 * 1024;
constexpr auto kLinger = std::chrono::seconds(2);

Task<> throw_if_cancelled() {
  if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(error::operation_aborted);
  }
}

Error describe(const error_code& ec, SSL* ssl) {
  if (ec == error::eof)
    return {.code = ErrorCode::unavailable, .message = "the connection was closed"};
  if (ec == error::operation_aborted || ec == error::bad_descriptor) {
    return {.code = ErrorCode::unavailable, .message = "the connection was closed here"};
  }
  if (ec == asio::ssl::error::stream_truncated) {
    return {.code = ErrorCode::unavailable, .message = describe_tls_error(ec, X509_V_OK)};
  }
  if (ec.category() == error::get_ssl_category()) {
    return {
        .code = ErrorCode::tls,
        .message = describe_tls_error(ec, ssl == nullptr ? X509_V_OK : SSL_get_verify_result(ssl))};
  }
  std::string text = ec.message();
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] + ('a' - 'A'));
  return {.code = ErrorCode::unavailable, .message = std::move(text)};
}

}  // namespace

struct Stream::State : std::enable_shared_from_this<Stream::State> {
  State(Socket s, std::shared_ptr<asio::ssl::context> c)
      : socket(std::move(s)), context(std::move(c)), timer(socket.get_executor()) {
    if (context) tls.emplace(socket, *context);
    error_code ec;
    if (socket.is_open()) socket.non_blocking(true, ec);
  }

  // Counts an operation as long as it is awaited.
  struct Pending {
    explicit Pending(State& s) : state(s) { ++state.pending; }
    ~Pending() { --state.pending; }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    State& state;
  };

  [[nodiscard]] SSL* ssl() { return tls ? tls->native_handle() : nullptr; }

  Task<std::unexpected<Error>> failed(error_code ec) {
    if (ec == error::operation_aborted) {
      if (expired) co_return std::unexpected(timeout());
      co_await throw_if_cancelled();
    }
    co_return std::unexpected(describe(ec, ssl()));
  }

  static Error timeout() { return {.code = ErrorCode::timeout, .message = "timed out"}; }

  void arm(Deadline when) {
    armed = when;
    timer.expires_at(when);
    timer.async_wait([weak = weak_from_this()](const error_code& ec) {
      if (ec) return;
      if (const auto self = weak.lock()) self->fired();
    });
  }

  void fired() {
    armed = kNever;
    if (deadline == kNever) return;
    if (deadline > Clock::now()) return arm(deadline);
    expired = true;
    error_code ec;
    if (pending > 0) socket.cancel(ec);
  }

  Task<Result<void>> handshake(asio::ssl::stream_base::handshake_type type) {
    if (expired) co_return std::unexpected(timeout());
    error_code ec;
    {
      const Pending mark(*this);
      co_await tls->async_handshake(type, asio::redirect_error(use_task, ec));
    }
    if (!ec) co_return Result<void>{};
    if (ec == error::eof || ec == asio::ssl::error::stream_truncated ||
        ec == error::connection_reset) {
      co_return fail(ErrorCode::tls, "the peer closed the connection during the TLS handshake");
    }
    co_return co_await failed(ec);
  }

  Task<Result<void>> write_plain(std::span<const asio::const_buffer> buffers) {
    std::array<asio::const_buffer, 4> batch;
    std::size_t offset = 0;  // of what is sent of buffers.front()
    while (true) {
      while (!buffers.empty() && buffers.front().size() == offset) {
        buffers = buffers.subspan(1);
        offset = 0;
      }
      if (buffers.empty()) co_return Result<void>{};
      const std::size_t count = std::min(batch.size(), buffers.size());
      std::copy_n(buffers.begin(), count, batch.begin());
      std::fill(batch.begin() + static_cast<std::ptrdiff_t>(count), batch.end(),
                asio::const_buffer{});
      batch[0] += offset;
      error_code ec;
      std::size_t sent = socket.write_some(batch, ec);
      if (ec == error::would_block || ec == error::try_again || unyielded >= kYieldAfter) {
        unyielded = 0;
        if (!ec) ec = error::would_block;
        const Pending mark(*this);
        error_code wait_ec;
        co_await socket.async_wait(Socket::wait_write, asio::redirect_error(use_task, wait_ec));
        if (wait_ec) co_return co_await failed(wait_ec);
      } else if (ec) {
        co_return co_await failed(ec);
      }
      unyielded += sent;
      while (sent > 0) {
        const std::size_t step = std::min(sent, buffers.front().size() - offset);
        sent -= step;
        offset += step;
        if (offset == buffers.front().size()) {
          buffers = buffers.subspan(1);
          offset = 0;
        }
      }
    }
  }

  Task<Result<void>> write_tls(std::span<const asio::const_buffer> buffers) {
    const Pending mark(*this);
    std::string flat;
    while (!buffers.empty()) {
      asio::const_buffer next = buffers.front();
      buffers = buffers.subspan(1);
      if (!buffers.empty() && next.size() < kFlatten) {  // small pieces share a record
        flat.assign(static_cast<const char*>(next.data()), next.size());
        while (!buffers.empty() && flat.size() + buffers.front().size() <= kFlatten) {
          flat.append(static_cast<const char*>(buffers.front().data()), buffers.front().size());
          buffers = buffers.subspan(1);
        }
        next = asio::buffer(flat);
      }
      while (next.size() > 0) {
        error_code ec;
        next += co_await tls->async_write_some(next, asio::redirect_error(use_task, ec));
        if (ec) co_return co_await failed(ec);
      }
    }
    co_return Result<void>{};
  }

  // Queues close_notify and sends what the socket takes at once.
  void shut_down_tls() {
    if (!tls || pending > 0 || !SSL_is_init_finished(ssl())) return;
    error_code ec;
    tls->shutdown(ec);  // the socket does not block: this ends where it would wait for the peer
  }

  Socket socket;
  std::shared_ptr<asio::ssl::context> context;
  std::optional<asio::ssl::stream<Socket&>> tls;
  Timer timer;
  Deadline deadline = kNever;
  Deadline armed = kNever;  // when the timer fires; never later than the deadline
  int pending = 0;
  bool expired = false;
  std::size_t unyielded = 0;
};

Stream::Stream(Socket socket) : Stream(std::move(socket), nullptr) {}
Stream::Stream(Socket socket, std::shared_ptr<asio::ssl::context> context)
    : state_(std::make_shared<State>(std::move(socket), std::move(context))) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

void Stream::start_tls(std::shared_ptr<asio::ssl::context> context) {
  state_->context = std::move(context);
  state_->tls.emplace(state_->socket, *state_->context);
}

Task<Result<void>> Stream::handshake_client(const std::string& verify_name) {
  if (auto ready = prepare_client_handshake(state_->ssl(), verify_name); !ready) co_return ready;
  co_return co_await state_->handshake(asio::ssl::stream_base::client);
}

Task<Result<void>> Stream::handshake_server() {
  return state_->handshake(asio::ssl::stream_base::server);
}

Task<Result<std::size_t>> Stream::read_some(std::span<char> buffer) {
  State& state = *state_;
  if (state.expired) co_return std::unexpected(State::timeout());
  error_code ec;
  std::size_t size = 0;
  {
    const State::Pending mark(state);
    const auto target = asio::buffer(buffer.data(), buffer.size());
    if (state.tls) {
      size = co_await state.tls->async_read_some(target, asio::redirect_error(use_task, ec));
    } else {
      size = co_await state.socket.async_read_some(target, asio::redirect_error(use_task, ec));
    }
  }
  if (!ec) co_return size;
  if (ec == error::eof) co_return std::size_t{0};
  co_return co_await state.failed(ec);
}

Task<Result<void>> Stream::write(std::span<const asio::const_buffer> buffers) {
  if (state_->expired) co_return std::unexpected(State::timeout());
  if (state_->tls) co_return co_await state_->write_tls(buffers);
  co_return co_await state_->write_plain(buffers);
}

Task<Result<void>> Stream::write(std::string_view bytes) {
  const asio::const_buffer buffer(bytes.data(), bytes.size());
  co_return co_await write(std::span(&buffer, 1));
}

void Stream::set_deadline(Deadline deadline) {
  State& state = *state_;
  state.deadline = deadline;
  state.expired = false;
  if (deadline < state.armed) state.arm(deadline);
}

bool Stream::is_stale() {
  State& state = *state_;
  if (!state.socket.is_open()) return true;
  error_code ec;
  char byte = 0;
  if (state.tls) {
    // Session tickets may have come in: reading consumes them and then finds nothing.
    state.tls->read_some(asio::buffer(&byte, 1), ec);
  } else {
    state.socket.receive(asio::buffer(&byte, 1), Socket::message_peek, ec);
  }
  return ec != error::would_block && ec != error::try_again;
}

void Stream::close() {
  State& state = *state_;
  state.timer.cancel();
  state.armed = kNever;
  state.deadline = kNever;
  if (!state.socket.is_open()) return;
  state.shut_down_tls();
  error_code ec;
  state.socket.close(ec);
}

void Stream::abort() {
  error_code ec;
  if (!state_->socket.is_open()) return;
  state_->socket.set_option(Socket::linger(true, 0), ec);
  state_->socket.close(ec);
}

Task<> Stream::close_gracefully(std::size_t limit) {
  State& state = *state_;
  if (!state.socket.is_open()) co_return;
  state.shut_down_tls();
  error_code ec;
  state.socket.shutdown(Socket::shutdown_send, ec);
  set_deadline(std::min(state.deadline, Clock::now() + kLinger));
  std::array<char, 4096> sink;
  while (!ec && limit > 0 && !state.expired) {
    const State::Pending mark(state);
    const std::size_t size = co_await state.socket.async_read_some(
        asio::buffer(sink), asio::redirect_error(use_task, ec));
    limit -= std::min(limit, size);
  }
  close();
}

bool Stream::is_open() const {
  return state_->socket.is_open();
}

asio::ip::tcp::endpoint Stream::remote() const {
  error_code ec;
  return state_->socket.remote_endpoint(ec);
}

namespace {

Task<Result<void>> connect_one(Socket& socket, asio::ip::tcp::endpoint endpoint) {
  error_code ec;
  socket.open(endpoint.protocol(), ec);
  if (!ec) {
    set_tcp_options(socket.native_handle());
    co_await socket.async_connect(endpoint, asio::redirect_error(use_task, ec));
  }
  if (!ec) co_return Result<void>{};
  if (ec == error::operation_aborted) co_await throw_if_cancelled();
  co_return std::unexpected(describe(ec, nullptr));
}

}  // namespace

void set_tcp_options(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    ::setsockopt(descriptor, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

Task<Result<Socket>> connect_any(std::span<const asio::ip::tcp::endpoint> endpoints,
                                 Deadline deadline) {
  const auto executor = co_await asio::this_coro::executor;
  Error last{.code = ErrorCode::unavailable, .message = "no address to connect to"};
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    Deadline until = deadline;
    if (deadline != kNever) {
      const auto now = Clock::now();
      until = now + (deadline - now) / static_cast<Clock::rep>(endpoints.size() - i);
    }
    Socket socket(executor);
    auto connected = co_await with_timeout(until, connect_one(socket, endpoints[i]));
    if (connected) co_return Result<Socket>(std::move(socket));
    last = connected.error();
    if (last.code == ErrorCode::timeout) last.message = "connect timed out";
  }
  co_return std::unexpected(std::move(last));
}

}  // namespace gitops::net
