#include "tunnel-client/session.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/crypto.hpp"
#include "common/net/relay.hpp"
#include "tunnel-client/http_activity_tracker.hpp"

namespace gitops::tunnel_client {
namespace {

using What = tunnel::ClientControl::Event::What;

// Number of tasks of a session besides those of work connections.
constexpr std::size_t kOtherTasks = 2;
// Number of streams besides open work connections: the control stream, and streams that have ended
// on one side only.
constexpr std::size_t kOtherStreams = 1 + 256;
// Interval of attempts to open a stream while the server has too many unaccepted ones.
constexpr auto kBetweenOpens = std::chrono::milliseconds(10);
// Time limit for the server to act on stop() and to send the users that it accepted before.
constexpr auto kWithdrawal = std::chrono::seconds(5);
constexpr auto kLastRequests = std::chrono::milliseconds(500);
// Minimum time without a request after which a connection counts as idle.
constexpr auto kQuiet = std::chrono::milliseconds(1000);
// Logged part of a run id. The whole one is secret: it allows replacing the session.
constexpr std::size_t kLoggedRunId = 8;

const Log& log() {
  static const Log kLog("session");
  return kLog;
}

tunnel::yamux::SessionOptions as_client(tunnel::yamux::SessionOptions options,
                                        std::size_t max_work) {
  options.role = tunnel::yamux::Role::client;
  options.max_streams = max_work + kOtherStreams;
  return options;
}

Session::Options with_announced_limit(Session::Options options) {
  options.control.login.max_work_conns = static_cast<std::int64_t>(options.max_work);
  return options;
}

Metrics::Labels with(Metrics::Labels labels, const std::pair<std::string, std::string>& label) {
  labels.insert(label);
  return labels;
}

tunnel::ClientControl::Randomness draw() {
  return {.iv = random_bytes(Aes128Cfb::kIvSize),
          .seed = random_seed(),
          .random = random_bytes(tunnel::ClientHello::kRandomSize),
          .nonce = random_bytes(kSealNonceSize)};
}

}  // namespace

// Connection of a user, while it lasts.
class Session::Carried {
 public:
  Carried(Session& session, net::Channel& stream) : session_(session), stream_(stream) {
    session_.carried_.push_back(this);
    session_.traffic_.connections.Increment();
    session_.traffic_.open_connections.Increment();
    session_.changed_.notify_all();
  }
  ~Carried() {
    std::erase(session_.carried_, this);
    session_.traffic_.open_connections.Decrement();
    session_.changed_.notify_all();
  }
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  Task<> relay(net::Channel& upstream, net::Buffer& received) {
    upstream_ = &upstream;
    net::Buffer answer(stream_.reactor().blocks);
    // frp's server ends its side only when it is done with both directions: the user has
    // disconnected.
    co_await net::relay({stream_, received, from_user_, /*end_closes=*/true,
                         [this](std::string_view bytes) { from_user(bytes); }},
                        {upstream, answer, from_upstream_, /*end_closes=*/false,
                         [this](std::string_view bytes) { from_upstream(bytes); }},
                        session_.options_.idle_timeout);
    upstream_ = nullptr;
  }
  // Returns whether no request is in flight and none was for a while.
  [[nodiscard]] bool is_quiet(Clock::time_point now) const {
    return upstream_ != nullptr && watch_.is_idle() && now - last_ >= kQuiet;
  }
  void close() {
    upstream_->close();
    stream_.close();
  }

 private:
  void from_user(std::string_view bytes) {
    const auto before = watch_.requests();
    watch_.from_user(bytes);
    auto& traffic = session_.traffic_;
    traffic.requests.Increment(static_cast<double>(watch_.requests() - before));
    traffic.bytes_from_server.Increment(static_cast<double>(bytes.size()));
    last_ = stream_.reactor().now();
  }
  void from_upstream(std::string_view bytes) {
    watch_.from_upstream(bytes);
    session_.traffic_.bytes_to_server.Increment(static_cast<double>(bytes.size()));
    last_ = stream_.reactor().now();
  }

  Session& session_;
  net::Channel& stream_;
  net::Channel* upstream_ = nullptr;  // null unless relaying
  HttpActivityTracker watch_;
  Clock::time_point last_{};
  std::uint64_t from_user_ = 0;
  std::uint64_t from_upstream_ = 0;
};

Traffic::Traffic(Metrics& metrics, const Metrics::Labels& link)
    : requests(metrics.counter("gitops_tunnel_client_requests_total",
                               "Requests of users; an upgraded connection counts once", link)),
      connections(metrics.counter("gitops_tunnel_client_connections_total",
                                  "Connections that the server made for users", link)),
      failed_connections(metrics.counter("gitops_tunnel_client_failed_connections_total",
                                         "Those that could not be connected to the upstream",
                                         link)),
      bytes_from_server(metrics.counter("gitops_tunnel_client_bytes_total",
                                        "Bytes that were passed on",
                                        with(link, {"direction", "from_server"}))),
      bytes_to_server(metrics.counter("gitops_tunnel_client_bytes_total",
                                      "Bytes that were passed on",
                                      with(link, {"direction", "to_server"}))),
      open_connections(metrics.gauge("gitops_tunnel_client_open_connections",
                                     "Connections for users at the moment", link)),
      sessions(metrics.counter("gitops_tunnel_client_sessions_total",
                               "Connections to the server that were made", link)),
      serving(metrics.gauge("gitops_tunnel_client_link_serving",
                            "1 while the server sends users through this link", link)) {}

Session::Session(const Executor& executor, std::unique_ptr<net::Channel> server, Options options,
                 Connect connect, Traffic& traffic, Event& changed)
    : options_(with_announced_limit(std::move(options))),
      connect_(std::move(connect)),
      traffic_(traffic),
      control_(options_.control, draw(), wall_now(), Clock::now()),
      changed_(changed),
      tasks_(executor) {
  if (options_.dial) {
    control_stream_ = std::move(server);
  } else {
    link_.emplace(std::move(server), as_client(options_.link, options_.max_work),
                  tunnel::Link::OnStream{});
    link_->on_draining([this] { changed_.notify_all(); });
  }
}

void Session::end(Error error) {
  if (!ending_) ending_ = std::move(error);
  tasks_.cancel();
}

Task<Error> Session::run() {
  if (link_) tasks_.spawn("link", [this] { return maintain_link(); });
  tasks_.spawn("control", [this] { return maintain_control(); });
  co_await tasks_.join();
  if (!ending_) ending_ = Error{.code = ErrorCode::internal, .message = "the session stopped"};
  co_return *ending_;
}

Task<> Session::maintain_link() {
  end(co_await link_->run());
}

Task<> Session::maintain_control() {
  auto error = co_await converse();
  // Aborts as Link does: a graceful end would wait for bytes that the server does not acknowledge.
  if (!link_ && error.code == ErrorCode::timeout) control_stream_->abort();
  end(std::move(error));
}

// -- the control stream --

Task<Error> Session::converse() {
  if (link_) {
    auto opened = link_->open();
    if (!opened) co_return opened.error();
    control_stream_ = std::move(*opened);
  }
  std::array<char, 4096> room;
  std::vector<tunnel::ClientControl::Event> events;
  while (true) {
    // Repeats, since stop() may add output during the write.
    while (!control_.output().empty()) {
      const auto output = std::exchange(control_.output(), {});
      control_stream_->set_write_deadline(deadline_after(options_.connect_timeout));
      is_writing_ = true;
      const auto written = co_await control_stream_->write(output);
      is_writing_ = false;
      if (!written) co_return written.error();
    }
    control_stream_->set_read_deadline(control_.due());
    const auto size = co_await control_stream_->read_some(room);
    if (!size && size.error().code != ErrorCode::timeout) co_return size.error();
    if (size && *size == 0) {
      co_return Error{.code = ErrorCode::unavailable, .message = "the server ended the session"};
    }
    events.clear();
    if (size) control_.receive(std::span(room).first(*size), Clock::now(), events);
    control_.tick(Clock::now());
    for (const auto& event : events) handle(event);
    if (size) changed_.notify_all();
    if (control_.failure()) co_return *control_.failure();
  }
}

void Session::handle(const tunnel::ClientControl::Event& event) {
  switch (event.what) {
    case What::logged_in:
      log().info("logged in", {{"run_id", std::string_view(event.text).substr(0, kLoggedRunId)},
                               {"server_version", control_.server_version()}});
      break;
    case What::proxy_started:
      log().info("serving", {{"proxy", event.proxy}, {"address", event.text}});
      if (!serving_since_) serving_since_ = Clock::now();
      break;
    case What::proxy_refused:
      log().warning("the server refuses the proxy; asking again later",
                    {{"proxy", event.proxy}, {"reason", event.text}});
      break;
    case What::work_wanted:
      if (tasks_.size() < options_.max_work + kOtherTasks) {
        tasks_.spawn("work", [this] { return work(); });
      } else {
        warn("no further work connection",
             {.code = ErrorCode::too_many_requests, .message = "the server asks for too many"});
      }
      break;
  }
}

bool Session::is_nearly_full() const {
  auto most = options_.max_work;
  if (const auto announced = control_.max_work_conns(); announced > 0) {
    most = std::min(most, static_cast<std::size_t>(announced));
  }
  return 4 * carried_.size() >= 3 * most;
}

Session::State Session::state() const {
  if (is_stopping_) return State::stopping;
  if (!control_.is_logged_in()) return State::logging_in;
  using Of = tunnel::ClientControl::Proxy::State;
  for (const auto& proxy : control_.proxies()) {
    if (proxy.state == Of::refused || proxy.state == Of::unusable) return State::refused;
    if (proxy.state != Of::running) return State::registering;
  }
  return State::serving;
}

std::string Session::refusal() const {
  if (state() != State::refused) return {};
  for (const auto& proxy : control_.proxies()) {
    if (proxy.state != tunnel::ClientControl::Proxy::State::running) return proxy.text;
  }
  return {};
}

// Sends queued output now, without waiting for the reader of the control stream, and wakes the
// reader for the rest.
void Session::send_now() {
  if (!control_stream_) return;
  auto& output = control_.output();
  if (!is_writing_ && !output.empty()) {
    const asio::const_buffer buffer(output.data(), output.size());
    const auto written = control_stream_->write_now(std::span(&buffer, 1));
    if (written.what == net::Transfer::data) output.erase(0, written.size);
  }
  control_stream_->set_read_deadline(Clock::now());
}

void Session::offer() {
  control_.offer(Clock::now());
  send_now();
}

void Session::stop() {
  if (std::exchange(is_stopping_, true)) return;
  control_.stop(Clock::now());
  send_now();
  tasks_.spawn("leave", [this] { return drain(); });
}

Task<> Session::drain() {
  const auto limit = deadline_after(kWithdrawal);
  while (!has_withdrawn() && Clock::now() < limit) co_await changed_.wait(limit);
  co_await sleep_for(kLastRequests);
  while (!carried_.empty()) {
    close_idle();
    co_await changed_.wait(deadline_after(kQuiet / 4));
  }
  close("everybody was served to the end");
}

void Session::close(std::string why) {
  end({.code = ErrorCode::unavailable, .message = std::move(why)});
}

void Session::close_idle() {
  const auto now = Clock::now();
  for (auto* connection : carried_) {
    if (connection->is_quiet(now)) connection->close();
  }
}

// -- work connections --

Task<Result<std::unique_ptr<net::Channel>>> Session::open_stream() {
  const auto deadline = deadline_after(options_.connect_timeout);
  if (!link_) co_return co_await options_.dial(deadline);
  // Opens a stream when the server has accepted earlier ones, since servers may request many at a
  // time.
  while (true) {
    auto stream = link_->open();
    if (link_->is_worn_out()) changed_.notify_all();
    const bool is_full = !stream && stream.error().code == ErrorCode::too_many_requests;
    if (!is_full || Clock::now() >= deadline) co_return stream;
    co_await sleep_for(kBetweenOpens);
  }
}

// Logs a failure, at most once a minute for each message, because failures can come with every
// request.
void Session::warn(std::string_view what, const Error& error) {
  const auto verdict = warnings_.check(error.message, Clock::now());
  if (!verdict.pass) return;
  log().warning(what, {{"error", error.message}, {"suppressed", verdict.suppressed}});
}

Task<> Session::work() {
  auto stream = co_await open_stream();
  if (!stream) {
    warn("no stream for a work connection", stream.error());
    co_return;
  }
  net::Buffer received((*stream)->reactor().blocks);
  const auto proxy = co_await await_start(**stream, received);
  if (!proxy) co_return;  // the server did not need it, or the link has ended
  if (const auto coding = coding_of(*proxy); coding.encryption || coding.compression) {
    std::string early(received.bytes());
    received.consume(early.size());
    *stream =
        tunnel::work_channel(std::move(*stream), coding, options_.control.token, std::move(early));
  }
  const auto done = co_await carry(*proxy, **stream, received);
  if (done) co_return;
  traffic_.failed_connections.Increment();
  warn("a connection was refused here", done.error());
}

// Offers the stream to the server and waits until it carries a user's connection. Bytes received
// after the start message stay in `received`.
Task<Result<std::string>> Session::await_start(net::Channel& stream, net::Buffer& received) {
  const auto offer = control_.work_offer(Clock::now());
  if (!offer) co_return std::unexpected(offer.error());
  stream.set_deadline(kNever);
  if (const auto written = co_await stream.write(*offer); !written) {
    co_return std::unexpected(written.error());
  }
  tunnel::MessageReader reader(control_.wire());
  while (true) {
    // Allocates no buffer before data arrives, which may take hours.
    const auto read = stream.read_now(received);
    if (read.what == net::Transfer::nothing) {
      co_await stream.readable();
      continue;
    }
    if (read.what == net::Transfer::end) co_return fail(ErrorCode::unavailable, "not needed");
    if (read.what != net::Transfer::data) co_return std::unexpected(stream.failure());
    auto bytes = received.bytes();
    auto message = reader.next(bytes);
    if (!message) co_return std::unexpected(message.error());
    received.consume(received.bytes().size() - bytes.size());
    if (!*message) continue;
    auto* start = std::get_if<tunnel::StartWorkConn>(&**message);
    if (start == nullptr) {
      co_return fail(ErrorCode::protocol, "the server starts no work connection");
    }
    if (!start->error.empty()) co_return fail(ErrorCode::forbidden, start->error);
    co_return std::move(start->proxy_name);
  }
}

tunnel::WorkCoding Session::coding_of(const std::string& proxy) const {
  for (const auto& known : control_.proxies()) {
    if (known.request.proxy_name != proxy) continue;
    return {.encryption = known.request.use_encryption,
            .compression = known.request.use_compression};
  }
  return {};
}

// Relays the stream to a new connection to the upstream.
Task<Result<void>> Session::carry(const std::string& proxy, net::Channel& stream,
                                  net::Buffer& received) {
  Carried connection(*this, stream);
  auto upstream = co_await connect_(proxy, deadline_after(options_.connect_timeout));
  if (!upstream) co_return std::unexpected(upstream.error());
  co_await connection.relay(**upstream, received);
  co_return Result<void>{};
}

std::string_view to_string(Session::State state) {
  switch (state) {
    case Session::State::logging_in:
      return "logging in";
    case Session::State::registering:
      return "registering";
    case Session::State::serving:
      return "serving";
    case Session::State::refused:
      return "refused";
    case Session::State::stopping:
      return "stopping";
  }
  return "unknown";
}

}  // namespace gitops::tunnel_client
