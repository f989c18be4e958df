#include "tunnel-server/session.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/net/replay_channel.hpp"
#include "common/tunnel/authentication.hpp"

namespace gitops::tunnel_server {
namespace {

using tunnel::Login;
using tunnel::NewProxy;
using tunnel::NewWorkConn;
using tunnel::OpeningReader;
using tunnel::ServerControl;

// Maximum number of streams before the login: a client needs one, for one message.
constexpr std::size_t kUnauthenticatedStreams = 1;
constexpr std::uint64_t kUnauthenticatedBytes = 24 * 1024;
// Number of work connections accepted beyond those requested, because frp's client opens some.
constexpr std::size_t kSpareWork = 10;
// Number of additional streams that have ended on one side only.
constexpr std::size_t kEndingStreams = 64;
// Maximum number of requested work connections: yamux allows a client 256 streams without an ACK.
constexpr std::int64_t kMaxAsked = 128;
constexpr std::size_t kMaxRunId = 64;
// Silence after which a connection may be dead.
constexpr auto kSilence = std::chrono::seconds(1);
// Time without a response to a probe after which a client is not the first choice.
constexpr auto kProbeTimeout = std::chrono::milliseconds(1'500);
// Time without a response after which a client is probed. Together with the time limit of the
// probe, a user of a dead client waits for 5 s at most.
constexpr auto kAnswerTimeout = std::chrono::milliseconds(100);
// Length of the random run id. Without yamux it identifies the session of a work connection, so it
// must not be guessable.
constexpr std::size_t kRandomRunId = 16;
// Time limit between Pings without yamux, where they are the only signs of life. frp's client sends
// one every 30 s, and frp's server has the same limit.
constexpr auto kPingTimeLimit = std::chrono::seconds(90);
constexpr auto kRest = std::chrono::milliseconds(200);  // interval of checks while draining
// Limits of a client that sends faster than it reads: bytes of queued responses, and proxies that
// are being authorized, more than it may have.
constexpr std::size_t kMaxQueued = 64 * 1024;
constexpr std::size_t kMaxJudged = 32;

const Log& log() {
  static const Log kLog("session");
  return kLog;
}

tunnel::yamux::SessionOptions as_server(tunnel::yamux::SessionOptions options) {
  options.role = tunnel::yamux::Role::server;
  options.max_streams = kUnauthenticatedStreams;
  options.answer_timeout = kAnswerTimeout;
  return options;
}

bool is_run_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRunId && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

// Connection that is counted while it lasts.
class Counted : public net::ReplayChannel {
 public:
  Counted(std::unique_ptr<net::Channel> below, std::shared_ptr<std::size_t> count)
      : ReplayChannel(std::move(below), {}), count_(std::move(count)) {
    ++*count_;
  }
  ~Counted() override { --*count_; }

 private:
  std::shared_ptr<std::size_t> count_;
};

}  // namespace

Task<Result<OpeningReader::Opening>> read_opening(net::Channel& channel) {
  std::array<char, 4096> room;
  OpeningReader reader;
  while (true) {
    const auto size = co_await channel.read_some(room);
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return fail(ErrorCode::unavailable, "the client left before a message");
    std::string_view bytes(room.data(), *size);
    auto opening = reader.next(bytes);
    if (!opening) co_return std::unexpected(opening.error());
    if (!*opening) continue;
    if (!bytes.empty()) {
      co_return fail(ErrorCode::protocol, "bytes stand behind the first message");
    }
    co_return std::move(**opening);
  }
}

Session::Session(const Executor& executor, std::uint64_t id,
                 std::unique_ptr<net::Channel> connection, std::string client, Options options,
                 SessionOwner& owner)
    : id_(id),
      client_(std::move(client)),
      options_(std::move(options)),
      owner_(owner),
      output_(executor),
      work_(executor),
      tasks_(executor) {
  link_.emplace(std::move(connection), as_server(options_.link),
                [this](std::unique_ptr<net::Channel> stream) { take_stream(std::move(stream)); });
  link_->limit(kUnauthenticatedStreams, kUnauthenticatedBytes);
  link_->on_heard([this] { work_.notify_all(); });
}

Session::Session(const Executor& executor, std::uint64_t id, std::unique_ptr<net::Channel> control,
                 OpeningReader::Opening opening, std::string client, Options options,
                 SessionOwner& owner)
    : id_(id),
      client_(std::move(client)),
      options_(std::move(options)),
      owner_(owner),
      opening_(std::move(opening)),
      control_stream_(std::move(control)),
      output_(executor),
      work_(executor),
      tasks_(executor) {}

std::string_view Session::run_id() const {
  return control_ ? std::string_view(control_->run_id()) : std::string_view();
}

std::string_view Session::printable_run_id() const {
  constexpr std::size_t kShown = 8;
  return run_id().substr(0, kShown);
}

std::size_t Session::carrying() const {
  if (!link_) return *carried_;
  const std::size_t idle = 1 + pool_.size() + work_begins_;
  return link_->stream_count() > idle ? link_->stream_count() - idle : 0;
}

std::size_t Session::max_users() const {
  auto most = options_.max_streams - std::min<std::size_t>(options_.max_streams, 1);
  if (login_.max_work_conns > 0) {
    most = std::min(most, static_cast<std::size_t>(login_.max_work_conns));
  }
  // Includes the work connections that wait for users.
  const auto pool = std::clamp<std::int64_t>(login_.pool_count, 0, options_.control.max_pool);
  const auto waiting = static_cast<std::size_t>(pool) + kSpareWork;
  return most > waiting ? most - waiting : 1;
}

bool Session::is_full() const {
  return control_ && carrying() + static_cast<std::size_t>(users_) >= max_users();
}

// -- life cycle --

Task<Error> Session::run() {
  if (link_) {
    tasks_.spawn("link", [this] { return maintain_link(); });
  } else {
    tasks_.spawn("control", [this] { return maintain_control(); });
  }
  tasks_.spawn("deadline", [this] { return enforce_deadline(); });
  co_await tasks_.join();
  if (!ending_) ending_ = Error{.code = ErrorCode::internal, .message = "the session stopped"};
  co_return *ending_;
}

void Session::end(Error error) {
  if (ending_) return;
  ending_ = std::move(error);
  work_.notify_all();
  // Closes gracefully if the connection accepts the data at once, so that the client does not see a
  // loss.
  if (link_) {
    link_->close();
  } else if (ending_->code == ErrorCode::timeout) {
    // Aborts as Link does: a graceful end would wait for bytes that the client does not
    // acknowledge.
    control_stream_->abort();
  } else {
    control_stream_->close();
  }
  tasks_.cancel();
}

void Session::retire(std::string_view why) {
  if (retired_ || ending_) return;
  retired_ = why;
  if (link_) link_->drain();
  pool_.clear();
  work_.notify_all();
  tasks_.spawn("retire", [this]() -> Task<> {
    while ((link_ && carrying() > 0) || users_ > 0) co_await sleep_for(kRest);
    end({.code = ErrorCode::unavailable, .message = *retired_});
  });
}

Task<> Session::maintain_link() {
  end(co_await link_->run());
}

Task<> Session::enforce_deadline() {
  co_await sleep_until(options_.login_deadline);
  if (!control_) end({.code = ErrorCode::timeout, .message = "the client did not log in"});
}

// Serves the control stream. A client that ends it has logged out; its users stay while its
// connection lasts.
Task<> Session::maintain_control() {
  auto error = co_await converse();
  if (!control_) {
    // Flushes the last messages to the client.
    co_await control_stream_->close_gracefully();
    co_return end(std::move(error));
  }
  for (const auto& [name, known] : std::exchange(proxies_, {})) owner_.withdraw(*this, name);
  retire(error.message);
}

// -- streams of the client --

void Session::take_stream(std::unique_ptr<net::Channel> stream) {
  if (!control_stream_) {
    control_stream_ = std::move(stream);
    tasks_.spawn("control", [this] { return maintain_control(); });
    return;
  }
  if (!wants_work()) return stream->abort();
  count_received_work();
  auto shared = std::make_shared<std::unique_ptr<net::Channel>>(std::move(stream));
  tasks_.spawn("work", [this, shared] { return take_work(shared, std::nullopt); });
}

void Session::attach(std::unique_ptr<net::Channel> connection, OpeningReader::Opening opening) {
  if (link_ || !wants_work() || *carried_ + pool_.size() + work_begins_ >= options_.max_streams) {
    return connection->close();
  }
  count_received_work();
  auto shared = std::make_shared<std::unique_ptr<net::Channel>>(std::move(connection));
  tasks_.spawn("work",
               [this, shared, opening = std::move(opening)] { return take_work(shared, opening); });
}

void Session::count_received_work() {
  // The newest request counts as served. If the oldest did, one whose connection was lost would
  // never expire under steady traffic.
  if (!requested_.empty()) requested_.pop_back();
  ++work_begins_;
}

bool Session::wants_work() const {
  return takes_users() &&
         (!requested_.empty() || pool_.size() + work_begins_ <
                                     static_cast<std::size_t>(control_->pool_size()) + kSpareWork);
}

Task<> Session::take_work(std::shared_ptr<std::unique_ptr<net::Channel>> stream, Opening opening) {
  const auto done = co_await read_work(**stream, std::move(opening));
  --work_begins_;
  if (!done) {
    log().debug("a work connection was refused",
                {{"client", client_}, {"error", done.error().message}});
    if (done.error().code == ErrorCode::forbidden) {
      std::string answer;
      (void)append_message(answer, tunnel::StartWorkConn{.error = done.error().message}, wire_);
      (void)co_await (*stream)->write(answer);
    }
    co_return;
  }
  if (!takes_users()) co_return;
  (*stream)->set_deadline(kNever);
  pool_.push_back(std::move(*stream));
  work_.notify_all();
}

Task<Result<void>> Session::read_work(net::Channel& stream, Opening opening) {
  stream.set_deadline(deadline_after(options_.work_timeout));
  if (!opening) {
    auto read = co_await read_opening(stream);
    if (!read) co_return std::unexpected(read.error());
    opening = std::move(*read);
  }
  const auto* work = std::get_if<NewWorkConn>(&opening->message);
  if (work == nullptr || opening->wire != wire_) {
    co_return fail(ErrorCode::protocol, "a stream that begins with something else");
  }
  // Requires the run id of this connection: a run id alone does not authenticate a client.
  if (work->run_id != run_id()) {
    co_return fail(ErrorCode::forbidden, "the run id is not that of this connection");
  }
  const bool is_signed = options_.auth_scopes.new_work_conns || !link_;
  if (is_signed &&
      !tunnel::is_privilege_key(work->privilege_key, options_.control.token, work->timestamp)) {
    co_return fail(ErrorCode::forbidden,
                   "token in NewWorkConn doesn't match token from configuration; the client needs "
                   "auth.additionalScopes = [\"NewWorkConns\"]");
  }
  co_return co_await owner_.admit_work(*this, *work);
}

// -- the control stream --

Task<Result<Login>> Session::read_login() {
  if (!opening_) {
    auto read = co_await read_opening(*control_stream_);
    if (!read) co_return std::unexpected(read.error());
    opening_ = std::move(*read);
  }
  auto opening = std::move(*std::exchange(opening_, std::nullopt));
  auto* login = std::get_if<Login>(&opening.message);
  wire_ = opening.wire;
  if (login == nullptr || (wire_ == tunnel::Wire::v2) != opening.hello.has_value()) {
    co_return fail(ErrorCode::protocol, "the client does not begin with a Login");
  }
  if (opening.hello) {
    options_.control.opening =
        tunnel::ServerOpening{.hello = std::move(*opening.hello),
                              .random = random_bytes(tunnel::ClientHello::kRandomSize),
                              .nonce = random_bytes(kSealNonceSize)};
  }
  co_return std::move(*login);
}

Task<> Session::refuse(const Error& error) {
  const auto& opening = options_.control.opening;
  std::string answer;
  tunnel::refuse_login(answer, options_.control.version, error.message,
                       opening ? &*opening : nullptr);
  (void)co_await control_stream_->write(answer);
}

Task<Error> Session::converse() {
  auto& stream = *control_stream_;
  stream.set_deadline(options_.login_deadline);
  auto login = co_await read_login();
  if (!login) co_return login.error();
  Result<Login> admitted = fail(ErrorCode::unsupported, "wire v2 needs JSON and aes-256-gcm here");
  const auto& opening = options_.control.opening;
  if (!opening || opening->hello.is_supported) {
    admitted = co_await owner_.admit_login(*this, std::move(*login));
  }
  if (!admitted) {
    co_await refuse(admitted.error());
    co_return admitted.error();
  }
  login_ = std::move(*admitted);
  login_.privilege_key = {};
  // The run id authorizes replacing its session and nothing else.
  auto run_id =
      link_ && is_run_id(login_.run_id) ? login_.run_id : hex_encode(random_bytes(kRandomRunId));
  options_.control.max_work_conns = static_cast<std::int64_t>(max_users());
  control_.emplace(options_.control, login_, std::move(run_id), random_bytes(Aes128Cfb::kIvSize));
  requested_.assign(static_cast<std::size_t>(control_->pool_size()), Clock::now());
  owner_.on_logged_in(*this);
  if (link_) link_->limit(options_.max_streams + kEndingStreams);
  log().info("client logged in", {{"client", client_},
                                  {"run_id", printable_run_id()},
                                  {"version", login_.version},
                                  {"hostname", login_.hostname},
                                  {"pool", control_->pool_size()},
                                  {"mux", has_mux()}});
  tasks_.spawn("writing", [this] { return write_queued(); });
  tasks_.spawn("pool", [this] { return maintain_pool(); });
  stream.set_read_deadline(kNever);
  std::array<char, 4096> room;
  std::vector<ServerControl::Event> events;
  while (true) {
    if (!link_) stream.set_read_deadline(deadline_after(kPingTimeLimit));
    const auto size = co_await stream.read_some(room);
    if (!size) co_return size.error();
    if (*size == 0) {
      co_return Error{.code = ErrorCode::unavailable, .message = "the client ended the session"};
    }
    events.clear();
    control_->receive(std::span(room).first(*size), events);
    for (auto& event : events) handle(std::move(event));
    if (control_->failure()) co_return *control_->failure();
    send();
    while (owes_responses()) co_await output_.wait();
  }
}

bool Session::owes_responses() {
  return control_->output().size() > kMaxQueued || judged_ >= kMaxJudged;
}

void Session::send() {
  if (control_ && !control_->output().empty()) output_.notify_all();
}

Task<> Session::write_queued() {
  while (true) {
    while (!control_->output().empty()) {
      const auto output = std::exchange(control_->output(), {});
      output_.notify_all();
      control_stream_->set_write_deadline(deadline_after(options_.write_timeout));
      if (auto written = co_await control_stream_->write(output); !written) {
        co_return end(written.error());
      }
    }
    co_await output_.wait();
  }
}

void Session::handle(ServerControl::Event event) {
  using What = ServerControl::Event::What;
  switch (event.what) {
    case What::new_proxy: {
      const auto ticket = ++tickets_;
      proxies_[event.proxy.proxy_name] = {.ticket = ticket};
      ++judged_;
      tasks_.spawn("proxy", [this, ticket, proxy = std::move(event.proxy)] {
        return judge_proxy(proxy, ticket);
      });
      break;
    }
    case What::proxy_closed:
      proxies_.erase(event.proxy.proxy_name);
      owner_.withdraw(*this, event.proxy.proxy_name);
      break;
    case What::pinged:
      // Skips a Ping during the authorization of another one, whose Pong serves both.
      if (std::exchange(judges_ping_, true)) break;
      tasks_.spawn("ping", [this, ping = std::move(event.ping)] { return judge_ping(ping); });
      break;
  }
}

Task<> Session::judge_proxy(NewProxy proxy, std::uint64_t ticket) {
  struct Judged {
    Session& session;
    ~Judged() {
      --session.judged_;
      session.output_.notify_all();
    }
  };
  const Judged judged{*this};
  const auto name = proxy.proxy_name;
  const auto admitted = co_await owner_.admit_proxy(*this, std::move(proxy));
  const auto found = proxies_.find(name);
  if (found == proxies_.end() || found->second.ticket != ticket) co_return;  // closed since
  Result<std::string> address;
  if (admitted) {
    address = owner_.offer(*this, name, *admitted);
  } else {
    address = std::unexpected(admitted.error());
  }
  if (address) {
    found->second.coding = {.encryption = admitted->use_encryption,
                            .compression = admitted->use_compression};
    control_->accept_proxy(name, *address);
    log().info("serving", {{"client", client_}, {"proxy", name}, {"address", *address}});
  } else {
    proxies_.erase(found);
    control_->refuse_proxy(name, address.error().message);
    log().warning("a proxy was refused",
                  {{"client", client_}, {"proxy", name}, {"reason", address.error().message}});
  }
  send();
}

Task<> Session::judge_ping(tunnel::Ping ping) {
  Result<void> admitted;
  if (options_.auth_scopes.heart_beats &&
      !tunnel::is_privilege_key(ping.privilege_key, options_.control.token, ping.timestamp)) {
    admitted =
        fail(ErrorCode::forbidden, "token in heartbeat doesn't match token from configuration");
  } else {
    admitted = co_await owner_.admit_ping(*this, ping);
  }
  judges_ping_ = false;
  control_->answer_ping(admitted ? std::string_view() : std::string_view(admitted.error().message));
  send();
}

// -- work connections --

// Returns a waiting work connection that is not stale; null if there is none.
std::unique_ptr<net::Channel> Session::take_waiting() {
  while (!pool_.empty()) {
    auto stream = std::move(pool_.front());
    pool_.pop_front();
    if (!stream->is_stale()) return stream;
  }
  return nullptr;
}

void Session::ask_for_work() {
  if (!takes_users()) return;
  const auto on_their_way = static_cast<std::int64_t>(work_begins_ + requested_.size());
  const auto missing =
      users_ + control_->pool_size() - static_cast<std::int64_t>(pool_.size()) - on_their_way;
  for (auto i = std::min(missing, kMaxAsked - on_their_way); i > 0; --i) {
    control_->want_work();
    requested_.push_back(Clock::now());
  }
  send();
}

// Maintains the pool: replaces waiting work connections that have ended, before a user needs them,
// and requested ones that did not come.
Task<> Session::maintain_pool() {
  while (true) {
    co_await sleep_for(std::chrono::seconds(1));
    std::erase_if(pool_, [](const auto& stream) { return stream->peer_closed(); });
    const auto now = Clock::now();
    while (!requested_.empty() && now - requested_.front() > options_.work_timeout) {
      requested_.pop_front();
    }
    ask_for_work();
  }
}

// Wraps a started work connection as the user's connection.
std::unique_ptr<net::Channel> Session::started(std::unique_ptr<net::Channel> stream,
                                               tunnel::WorkCoding coding) {
  stream->set_write_deadline(kNever);
  if (!link_) stream = std::make_unique<Counted>(std::move(stream), carried_);
  return tunnel::work_channel(std::move(stream), coding, options_.control.token, {});
}

bool Session::probe_if_silent() {
  if (!link_ || Clock::now() - link_->heard() < kSilence) return false;
  link_->probe();
  return true;
}

int Session::doubt() const {
  const auto probed = link_ ? link_->probed() : std::nullopt;
  if (!probed) return 0;
  return Clock::now() - *probed >= kProbeTimeout ? 2 : 1;
}

Task<Result<std::unique_ptr<net::Channel>>> Session::connect(std::string_view proxy,
                                                             Deadline deadline, Check check) {
  struct Waiting {
    std::int64_t& users;
    explicit Waiting(std::int64_t& u) : users(u) { ++users; }
    ~Waiting() { --users; }
  };
  const auto known = proxies_.find(proxy);
  if (known == proxies_.end()) co_return fail(ErrorCode::unavailable, "the proxy was closed");
  if (is_full()) {
    co_return fail(ErrorCode::too_many_requests, "the client carries as many users as it can");
  }
  const auto coding = known->second.coding;
  std::string start;
  if (auto appended =
          append_message(start, tunnel::StartWorkConn{.proxy_name = std::string(proxy)}, wire_);
      !appended) {
    co_return std::unexpected(appended.error());
  }
  if (probe_if_silent() && check == Check::alive) {
    const Waiting waiting(users_);
    while (doubt() > 0 && takes_users()) {
      if (!co_await work_.wait(deadline)) {
        co_return fail(ErrorCode::timeout, "the client gives no sign of life");
      }
    }
  }
  while (true) {
    std::unique_ptr<net::Channel> stream;
    {
      const Waiting waiting(users_);
      while (true) {
        if (!takes_users()) co_return fail(ErrorCode::unavailable, "the client has left");
        stream = take_waiting();
        if (stream) break;
        ask_for_work();
        if (!co_await work_.wait(deadline)) {
          co_return fail(ErrorCode::timeout, "the client brings no work connection");
        }
      }
    }
    ask_for_work();
    stream->set_write_deadline(deadline);
    if (auto written = co_await stream->write(start); !written) continue;
    co_return started(std::move(stream), coding);
  }
}

}  // namespace gitops::tunnel_server
