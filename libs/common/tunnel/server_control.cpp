#include "common/tunnel/server_control.hpp"

#include <algorithm>
#include <utility>

namespace gitops::tunnel {

namespace {

// Sends the server's hello, in v2, before all other output.
ControlCoder open_stream(const ServerControlOptions& options, std::string_view iv,
                         std::string& out) {
  if (!options.opening) return {options.token, iv};
  const auto hello = ServerHello::make(options.opening->random);
  append_hello(out, hello);
  return {control_keys(options.token, options.opening->hello, hello), ControlCoder::Side::server,
          options.opening->nonce};
}

}  // namespace

void refuse_login(std::string& out, std::string_view version, std::string_view error,
                  const ServerOpening* opening) {
  if (opening != nullptr && !opening->hello.is_supported) {
    append_hello(out, ServerHello::refusal(error));
    return;
  }
  if (opening != nullptr) append_hello(out, ServerHello::make(opening->random));
  // Cannot fail: our own texts are short.
  (void)append_message(out, LoginResp{.version = std::string(version), .error = std::string(error)},
                       opening == nullptr ? Wire::v1 : Wire::v2);
}

ServerControl::ServerControl(ServerControlOptions options, const Login& login, std::string run_id,
                             std::string_view iv)
    : options_(std::move(options)),
      run_id_(std::move(run_id)),
      pool_size_(std::clamp<std::int64_t>(login.pool_count, 0, options_.max_pool)),
      wire_(options_.opening ? Wire::v2 : Wire::v1),
      reader_(wire_),
      coder_(open_stream(options_, iv, output_)) {
  // Sends the response unencrypted; encryption begins after it.
  (void)append_message(output_,
                       LoginResp{.version = options_.version,
                                 .run_id = run_id_,
                                 .links = options_.links,
                                 .servers = options_.servers,
                                 .max_links = options_.max_links,
                                 .max_work_conns = options_.max_work_conns},
                       wire_);
  for (std::int64_t i = 0; i < pool_size_; ++i) want_work();
}

void ServerControl::send(const Message& message) {
  if (failure_) return;
  const auto start = output_.size();
  if (append_message(output_, message, wire_)) coder_.encrypt(output_, start);
}

void ServerControl::answer_ping(std::string_view error) {
  send(Pong{.error = std::string(error)});
}

void ServerControl::want_work() {
  send(ReqWorkConn{});
}

// -- receiving --

void ServerControl::receive(std::span<char> bytes, std::vector<Event>& events) {
  auto plain = coder_.decrypt(bytes);
  if (!plain && !failure_) {
    failure_ = plain.error();
    output_.clear();
  }
  std::string_view input = plain ? *plain : std::string_view();
  while (!failure_) {
    auto message = reader_.next(input);
    if (!message) {
      failure_ = message.error();
      output_.clear();
      return;
    }
    if (!*message) return;
    take(std::move(**message), events);
  }
}

void ServerControl::take(Message message, std::vector<Event>& events) {
  if (auto* proxy = std::get_if<NewProxy>(&message)) {
    take_proxy(std::move(*proxy), events);
  } else if (auto* closed = std::get_if<CloseProxy>(&message)) {
    const auto found = proxies_.find(closed->proxy_name);
    if (found == proxies_.end()) return;
    proxies_.erase(found);
    events.push_back({.what = Event::What::proxy_closed,
                      .proxy = {.proxy_name = std::move(closed->proxy_name)}});
  } else if (auto* ping = std::get_if<Ping>(&message)) {
    if (!options_.asks_for_pings) return answer_ping();
    events.push_back({.what = Event::What::pinged, .ping = std::move(*ping)});
  } else {
    failure_ =
        Error{.code = ErrorCode::protocol,
              .message = "the client sends a message that does not belong on a control stream"};
    output_.clear();
  }
}

void ServerControl::take_proxy(NewProxy proxy, std::vector<Event>& events) {
  const auto found = proxies_.find(proxy.proxy_name);
  if (found != proxies_.end()) {
    const auto& [request, remote_addr] = found->second;
    if (request == proxy) {
      // Repeats a response that the client missed; a pending one is sent by the owner's decision.
      if (remote_addr) {
        send(NewProxyResp{.proxy_name = proxy.proxy_name, .remote_addr = *remote_addr});
      }
      return;
    }
    // Replaces the earlier request of the same name.
    proxies_.erase(found);
    events.push_back(
        {.what = Event::What::proxy_closed, .proxy = {.proxy_name = proxy.proxy_name}});
  }
  if (proxies_.size() >= options_.max_proxies) {
    return send(NewProxyResp{.proxy_name = proxy.proxy_name, .error = "too many proxies"});
  }
  proxies_.emplace(proxy.proxy_name, Proxy{.request = proxy, .remote_addr = {}});
  events.push_back({.what = Event::What::new_proxy, .proxy = std::move(proxy)});
}

// -- responses of the owner --

void ServerControl::accept_proxy(std::string_view name, std::string_view remote_addr) {
  const auto found = proxies_.find(name);
  if (found == proxies_.end() || found->second.remote_addr) return;
  found->second.remote_addr = remote_addr;
  send(NewProxyResp{.proxy_name = std::string(name), .remote_addr = std::string(remote_addr)});
}

void ServerControl::refuse_proxy(std::string_view name, std::string_view error) {
  const auto found = proxies_.find(name);
  if (found == proxies_.end() || found->second.remote_addr) return;
  proxies_.erase(found);
  send(NewProxyResp{.proxy_name = std::string(name), .error = std::string(error)});
}

}  // namespace gitops::tunnel
