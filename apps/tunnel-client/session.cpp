#include "tunnel-client/session.hpp"

#include <array>
#include <utility>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/net/relay.hpp"

namespace gitops::tunnel {
namespace {

using What = ClientControl::Event::What;

// One connection of a user, as it is counted while it lasts, however it ends.
class Counted {
 public:
  Counted(Traffic& traffic, std::size_t& carrying, Event& changed)
      : traffic_(traffic), carrying_(carrying), changed_(changed) {
    ++carrying_;
    traffic_.connections.Increment();
    traffic_.open_connections.Increment();
  }
  ~Counted() {
    --carrying_;
    traffic_.open_connections.Decrement();
    traffic_.bytes_from_server.Increment(static_cast<double>(from_server));
    traffic_.bytes_to_server.Increment(static_cast<double>(to_server));
    changed_.notify_all();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::uint64_t from_server = 0;
  std::uint64_t to_server = 0;

 private:
  Traffic& traffic_;
  std::size_t& carrying_;
  Event& changed_;
};

const Log& log() {
  static const Log kLog("session");
  return kLog;
}

yamux::SessionOptions as_client(yamux::SessionOptions options) {
  options.role = yamux::Role::client;
  return options;
}

ClientControl::Randomness draw() {
  return {.iv = random_bytes(Aes128Cfb::kIvSize), .seed = random_seed()};
}

}  // namespace

Traffic::Traffic(Metrics& metrics)
    : connections(metrics.counter("gitops_tunnel_client_connections_total",
                                  "Connections of users that the server sent")),
      failed_connections(metrics.counter("gitops_tunnel_client_failed_connections_total",
                                         "Those that could not be connected to the upstream")),
      bytes_from_server(metrics.counter("gitops_tunnel_client_bytes_total",
                                        "Bytes of connections that have ended",
                                        {{"direction", "from_server"}})),
      bytes_to_server(metrics.counter("gitops_tunnel_client_bytes_total",
                                      "Bytes of connections that have ended",
                                      {{"direction", "to_server"}})),
      open_connections(metrics.gauge("gitops_tunnel_client_open_connections",
                                     "Connections of users at the moment")) {}

Session::Session(const Executor& executor, std::unique_ptr<net::Channel> server, Options options,
                 Connect connect, Traffic& traffic, Event& changed)
    : options_(std::move(options)),
      connect_(std::move(connect)),
      traffic_(traffic),
      link_(std::move(server), as_client(options_.link), {}),
      control_(options_.control, draw(), wall_now(), Clock::now()),
      changed_(changed),
      tasks_(executor) {}

void Session::end(Error error) {
  if (!ending_) ending_ = std::move(error);
  tasks_.cancel();
}

Task<Error> Session::run() {
  tasks_.spawn("link", [this] { return keep_link(); });
  tasks_.spawn("control", [this] { return keep_control(); });
  co_await tasks_.join();
  if (!ending_) ending_ = Error{.code = ErrorCode::internal, .message = "the session stopped"};
  co_return *ending_;
}

Task<> Session::keep_link() {
  end(co_await link_.run());
}

Task<> Session::keep_control() {
  end(co_await converse());
}

// -- the control stream --

Task<Error> Session::converse() {
  auto opened = link_.open();
  if (!opened) co_return opened.error();
  control_stream_ = std::move(*opened);
  std::array<char, 4096> room;
  std::vector<ClientControl::Event> events;
  while (true) {
    // Again and again, since stop() may add something meanwhile.
    while (!control_.output().empty()) {
      const auto output = std::exchange(control_.output(), {});
      control_stream_->set_write_deadline(deadline_after(options_.connect_timeout));
      if (auto written = co_await control_stream_->write(output); !written) {
        co_return written.error();
      }
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
    if (control_.failure()) co_return *control_.failure();
  }
}

void Session::handle(const ClientControl::Event& event) {
  switch (event.what) {
    case What::logged_in:
      log().info("logged in",
                 {{"run_id", event.text}, {"server_version", control_.server_version()}});
      break;
    case What::proxy_started:
      log().info("serving", {{"proxy", event.proxy}, {"address", event.text}});
      break;
    case What::proxy_refused:
      log().warning("the server refuses the proxy; asking again later",
                    {{"proxy", event.proxy}, {"reason", event.text}});
      break;
    case What::work_wanted:
      tasks_.spawn("work", [this] { return work(); });
      break;
  }
}

Session::State Session::state() const {
  if (is_stopping_) return State::stopping;
  if (!control_.is_logged_in()) return State::logging_in;
  using Of = ClientControl::Proxy::State;
  for (const auto& proxy : control_.proxies()) {
    if (proxy.state == Of::refused || proxy.state == Of::unusable) return State::refused;
    if (proxy.state != Of::running) return State::registering;
  }
  return State::serving;
}

std::string Session::refusal() const {
  if (state() != State::refused) return {};
  for (const auto& proxy : control_.proxies()) {
    if (proxy.state != ClientControl::Proxy::State::running) return proxy.text;
  }
  return {};
}

void Session::stop() {
  is_stopping_ = true;
  control_.stop();
  // Wakes the reader of the control stream, which sends what there is to send.
  if (control_stream_) control_stream_->set_read_deadline(Clock::now());
}

// -- work connections --

// Failures come with every request; one line a minute for each is enough.
void Session::warn(std::string_view what, const Error& error) {
  const auto verdict = warnings_.check(error.message, Clock::now());
  if (!verdict.pass) return;
  log().warning(what, {{"error", error.message}, {"suppressed", verdict.suppressed}});
}

Task<> Session::work() {
  auto stream = link_.open();
  if (!stream) {
    warn("no stream for a work connection", stream.error());
    co_return;
  }
  net::Buffer received((*stream)->reactor().blocks);
  auto done = co_await await_start(**stream, received);
  if (!done) co_return;  // the server did not need it, or the link is over
  done = co_await carry(**stream, received);
  if (done) co_return;
  traffic_.failed_connections.Increment();
  warn("a connection was refused here", done.error());
}

// Offers the stream to the server and waits until it carries a user's connection. What came with
// that message is left in `received`.
Task<Result<void>> Session::await_start(net::Channel& stream, net::Buffer& received) {
  std::string offer;
  if (auto appended = append_message(offer, NewWorkConn{.run_id = run_id()}); !appended) {
    co_return appended;
  }
  if (auto written = co_await stream.write(offer); !written) co_return written;
  MessageReader reader;
  while (true) {
    // Takes no memory before something comes, which may be in hours.
    const auto read = stream.read_now(received);
    if (read.what == net::Transfer::nothing) {
      co_await stream.readable();
      continue;
    }
    if (read.what == net::Transfer::end) co_return fail(ErrorCode::unavailable, "not needed");
    if (read.what != net::Transfer::data) co_return std::unexpected(stream.failure());
    auto bytes = received.bytes();
    const auto message = reader.next(bytes);
    if (!message) co_return std::unexpected(message.error());
    received.consume(received.bytes().size() - bytes.size());
    if (!*message) continue;
    const auto* start = std::get_if<StartWorkConn>(&**message);
    if (start == nullptr) {
      co_return fail(ErrorCode::protocol, "the server starts no work connection");
    }
    if (!start->error.empty()) co_return fail(ErrorCode::forbidden, start->error);
    co_return Result<void>{};
  }
}

// Relays the stream to a new connection to the upstream.
Task<Result<void>> Session::carry(net::Channel& stream, net::Buffer& received) {
  Counted counted(traffic_, carrying_, changed_);
  auto upstream = co_await connect_(deadline_after(options_.connect_timeout));
  if (!upstream) co_return std::unexpected(upstream.error());
  net::Buffer answer(stream.reactor().blocks);
  // frp's server ends its side only when it is done with both: a user has left.
  co_await net::relay({stream, received, counted.from_server, /*end_closes=*/true},
                      {**upstream, answer, counted.to_server}, options_.idle_timeout);
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

}  // namespace gitops::tunnel
