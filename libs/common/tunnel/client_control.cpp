#include "common/tunnel/client_control.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/core/text.hpp"
#include "common/tunnel/authentication.hpp"

namespace gitops::tunnel {
namespace {

using std::chrono::duration_cast;

// Maximum length of the server's texts in logs and status pages.
constexpr std::size_t kMaxText = 512;
// Maximum number of links that a server may announce.
constexpr std::int64_t kMaxLinks = 8;
constexpr std::size_t kMaxServers = 8;

}  // namespace

ClientControl::ClientControl(ClientControlOptions options, Randomness randomness, WallTime wall,
                             Clock::time_point now)
    : options_(std::move(options)),
      nonce_(std::move(randomness.nonce)),
      reader_(wire()),
      wall_(wall),
      login_sent_(now) {
  for (auto& request : options_.proxies) {
    proxies_.push_back(
        {.request = std::move(request), .backoff = Backoff(options_.retry, randomness.seed++)});
  }
  Login login = options_.login;
  login.timestamp = timestamp(now);
  login.privilege_key = privilege_key(options_.token, login.timestamp);
  if (options_.opening) {
    hello_ = ClientHello::make(options_.opening->transport, options_.opening->tls,
                               options_.opening->tcp_mux, randomness.random);
    append_hello(output_, hello_);
  } else {
    coder_.emplace(options_.token, randomness.iv);
  }
  // Sends the login unencrypted; encryption begins after it.
  if (auto sent = append_message(output_, login, wire()); !sent) fail_session(sent.error());
}

void ClientControl::fail_session(Error error) {
  if (failure_) return;
  failure_ = std::move(error);
  phase_ = Phase::stopped;
  output_.clear();
}

Result<void> ClientControl::send(const Message& message) {
  const auto start = output_.size();
  auto appended = append_message(output_, message, wire());
  if (appended) coder_->encrypt(output_, start);
  return appended;
}

// -- receiving --

void ClientControl::receive(std::span<char> bytes, Clock::time_point now,
                            std::vector<Event>& events) {
  if (failure_) return;
  const bool in_clear = phase_ == Phase::login;
  if (in_clear && options_.opening) return receive_opening(bytes, now, events);
  std::string_view input(bytes.data(), bytes.size());
  if (!in_clear) {
    const auto plain = coder_->decrypt(bytes);
    if (!plain) return fail_session(plain.error());
    input = *plain;
  }
  while (!failure_) {
    auto message = reader_.next(input);
    if (!message) return fail_session(message.error());
    if (!*message) return;
    take(std::move(**message), now, events);
    // Decrypts the bytes after LoginResp, which may be in the same read.
    if (in_clear) return receive(bytes.last(input.size()), now, events);
  }
}

void ClientControl::receive_opening(std::span<char> bytes, Clock::time_point now,
                                    std::vector<Event>& events) {
  std::string_view input(bytes.data(), bytes.size());
  while (phase_ == Phase::login) {
    auto frame = frames_.next(input);
    if (!frame) return fail_session(frame.error());
    if (!*frame) return;
    if (!coder_) {
      if (auto taken = take_hello(std::move(**frame)); !taken) return fail_session(taken.error());
      continue;
    }
    auto message = read_message(**frame);
    if (!message) return fail_session(message.error());
    take(std::move(*message), now, events);
  }
  receive(bytes.last(input.size()), now, events);
}

Result<void> ClientControl::take_hello(Frame frame) {
  if (frame.type != FrameType::server_hello) {
    return fail(ErrorCode::protocol, "the server does not begin with a hello");
  }
  const auto hello = ServerHello::read(std::move(frame.payload));
  if (!hello) return std::unexpected(hello.error());
  if (!hello->error.empty()) {
    return fail(ErrorCode::forbidden, "the server refuses the hello: " + hello->error);
  }
  coder_.emplace(control_keys(options_.token, hello_, *hello), ControlCoder::Side::client, nonce_);
  return {};
}

void ClientControl::take(Message message, Clock::time_point now, std::vector<Event>& events) {
  if (phase_ == Phase::login) {
    if (auto* answer = std::get_if<LoginResp>(&message)) {
      return logged_in(std::move(*answer), now, events);
    }
  } else if (auto* proxy = std::get_if<NewProxyResp>(&message)) {
    return proxy_answered(std::move(*proxy), now, events);
  } else if (std::holds_alternative<ReqWorkConn>(message)) {
    if (phase_ == Phase::logged_in) events.push_back({.what = Event::What::work_wanted});
    return;
  } else if (const auto* pong = std::get_if<Pong>(&message)) {
    ponged_ = now;
    if (unanswered_pings_ > 0) --unanswered_pings_;
    if (pong->error.empty()) return;
    return fail_session(
        {.code = ErrorCode::forbidden,
         .message = "the server refuses a ping: " + shortened(pong->error, kMaxText)});
  }
  fail_session({.code = ErrorCode::protocol,
                .message = "the server sends a message that only a client may send, or too early"});
}

void ClientControl::logged_in(LoginResp answer, Clock::time_point now, std::vector<Event>& events) {
  if (!answer.error.empty()) {
    return fail_session(
        {.code = ErrorCode::forbidden,
         .message = "the server refuses the login: " + shortened(answer.error, kMaxText)});
  }
  phase_ = Phase::logged_in;
  pinged_ = ponged_ = now;
  run_id_ = std::move(answer.run_id);
  server_version_ = shortened(answer.version, kMaxText);
  links_ = std::clamp<std::int64_t>(answer.links, 1, kMaxLinks);
  max_links_ = std::clamp<std::int64_t>(answer.max_links, links_, kMaxLinks);
  max_work_conns_ = std::max<std::int64_t>(answer.max_work_conns, 0);
  servers_ = std::move(answer.servers);
  if (servers_.size() > kMaxServers) servers_.resize(kMaxServers);
  events.push_back({.what = Event::What::logged_in, .text = run_id_});
  if (!options_.hold_proxies) offer(now);
}

void ClientControl::offer(Clock::time_point now) {
  options_.hold_proxies = false;
  if (phase_ != Phase::logged_in) return;
  for (auto& proxy : proxies_) {
    if (proxy.state == Proxy::State::waiting && proxy.due == kNever) ask_for(proxy, now);
  }
}

void ClientControl::proxy_answered(NewProxyResp answer, Clock::time_point now,
                                   std::vector<Event>& events) {
  const auto proxy = std::ranges::find_if(
      proxies_, [&](const Proxy& p) { return p.request.proxy_name == answer.proxy_name; });
  // Ignores a response for a proxy that does not wait, such as the second one of a repeated
  // NewProxy.
  if (proxy == proxies_.end() || proxy->state != Proxy::State::waiting) return;
  const bool refused = !answer.error.empty();
  proxy->text = shortened(refused ? answer.error : answer.remote_addr, kMaxText);
  proxy->state = refused ? Proxy::State::refused : Proxy::State::running;
  proxy->due = kNever;
  if (refused) {
    proxy->due = now + proxy->backoff.next(options_.retry.initial / 2);
  } else {
    proxy->backoff.reset();
  }
  events.push_back({.what = refused ? Event::What::proxy_refused : Event::What::proxy_started,
                    .proxy = proxy->request.proxy_name,
                    .text = proxy->text});
}

// -- sending --

void ClientControl::ask_for(Proxy& proxy, Clock::time_point now) {
  if (auto sent = send(proxy.request); !sent) {
    proxy.state = Proxy::State::unusable;
    proxy.text = sent.error().message;
    proxy.due = kNever;
    return;
  }
  proxy.state = Proxy::State::waiting;
  proxy.due = now + options_.answer_timeout;
}

std::int64_t ClientControl::timestamp(Clock::time_point now) const {
  const auto at = wall_.time_since_epoch() + (now - login_sent_);
  return duration_cast<std::chrono::seconds>(at).count();
}

Result<std::string> ClientControl::work_offer(Clock::time_point now) const {
  NewWorkConn offer{.run_id = run_id_};
  if (options_.sign_work) {
    offer.timestamp = timestamp(now);
    offer.privilege_key = privilege_key(options_.token, offer.timestamp);
  }
  std::string bytes;
  if (options_.opening) bytes += kWireMagic;
  if (auto appended = append_message(bytes, offer, wire()); !appended) {
    return std::unexpected(appended.error());
  }
  return bytes;
}

void ClientControl::ping(Clock::time_point now) {
  Ping ping;
  if (options_.sign_pings) {
    ping.timestamp = timestamp(now);
    ping.privilege_key = privilege_key(options_.token, ping.timestamp);
  }
  pinged_ = now;
  ++unanswered_pings_;
  (void)send(ping);
}

void ClientControl::stop(Clock::time_point now) {
  if (phase_ == Phase::login) {
    return fail_session({.code = ErrorCode::unavailable, .message = "stopped before the login"});
  }
  if (phase_ != Phase::logged_in) return;
  phase_ = Phase::stopped;
  for (auto& proxy : proxies_) {
    const bool asked = proxy.state == Proxy::State::waiting && proxy.due != kNever;
    const bool known = proxy.state == Proxy::State::running || asked;
    proxy.state = Proxy::State::unusable;
    proxy.due = kNever;
    // Cannot fail: the name fitted into NewProxy.
    if (known) (void)send(CloseProxy{.proxy_name = proxy.request.proxy_name});
  }
  // Servers process messages in order, so the Pong confirms the messages before.
  ping(now);
}

void ClientControl::tick(Clock::time_point now) {
  if (failure_) return;
  if (phase_ == Phase::login) {
    if (now - login_sent_ < options_.login_timeout) return;
    return fail_session(
        {.code = ErrorCode::timeout, .message = "the server does not answer the login"});
  }
  if (now - ponged_ >= options_.pong_timeout) {
    return fail_session(
        {.code = ErrorCode::timeout, .message = "the server does not answer pings"});
  }
  if (now - pinged_ >= options_.ping_interval) ping(now);
  for (auto& proxy : proxies_) {
    if (now >= proxy.due) ask_for(proxy, now);
  }
}

Clock::time_point ClientControl::due() const {
  if (failure_) return kNever;
  if (phase_ == Phase::login) return login_sent_ + options_.login_timeout;
  auto due = std::min(pinged_ + options_.ping_interval, ponged_ + options_.pong_timeout);
  for (const auto& proxy : proxies_) due = std::min(due, proxy.due);
  return due;
}

}  // namespace gitops::tunnel
