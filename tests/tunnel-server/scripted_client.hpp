#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/task_group.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/link.hpp"
#include "common/tunnel/work_channel.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The client of a tunnel as a test configures it: one that serves, signs nothing, stalls or brings
// no work.
namespace gitops::tunnel_server {

inline Task<std::string> read(net::Channel& channel) {
  std::array<char, 16 * 1024> room;
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : std::string(room.data(), *size);
}

inline tunnel::NewProxy proxy(const std::string& subdomain, std::string token = {}) {
  tunnel::NewProxy proxy{.proxy_name = subdomain, .proxy_type = "http", .subdomain = subdomain};
  if (!token.empty()) proxy.metas.emplace("Authorization", Secret(std::move(token)));
  return proxy;
}

struct ScriptedClientOptions {
  std::vector<tunnel::NewProxy> proxies = {proxy("acc-rt")};
  std::string run_id = {};
  Secret token = Secret("s3cret");
  int pool = 1;
  bool brings_work = true;
  int ignored_work = 0;  // number of first requests for work connections that it brings none for
  bool stalls = false;   // reads nothing of its work connections
  bool mux = true;
  bool sign_pings = false;
  bool sign_work = false;
  std::chrono::milliseconds ping_interval{30'000};
  tunnel::Wire wire = tunnel::Wire::v1;
  std::string instance = {};  // of a client with several links
  std::int64_t max_work = 0;  // work connections that it tells it can have
};

using Dial = std::function<std::unique_ptr<net::Channel>()>;

// A client of the tunnel whose upstream answers each request with its own name.
class ScriptedClient {
 public:
  ScriptedClient(const Executor& executor, Dial dial, std::string name,
                 ScriptedClientOptions options)
      : name_(std::move(name)),
        options_(std::move(options)),
        dial_(std::move(dial)),
        control_({.login = login_of(options_),
                  .token = options_.token,
                  .proxies = options_.proxies,
                  .sign_pings = options_.sign_pings,
                  .sign_work = options_.sign_work,
                  .opening = options_.wire == tunnel::Wire::v2
                                 ? std::optional(tunnel::ClientOpening{.transport = "tcp"})
                                 : std::nullopt,
                  .ping_interval = options_.ping_interval},
                 {.iv = random_bytes(Aes128Cfb::kIvSize),
                  .seed = 1,
                  .random = random_bytes(tunnel::ClientHello::kRandomSize),
                  .nonce = random_bytes(kSealNonceSize)},
                 wall_now(), Clock::now()),
        changed_(executor),
        tasks_(executor) {
    if (options_.mux) {
      link_.emplace(dial_(), tunnel::yamux::SessionOptions{.role = tunnel::yamux::Role::client},
                    tunnel::Link::OnStream{});
      tasks_.spawn("link", [this]() -> Task<> {
        ending = co_await link_->run();
        changed_.notify_all();
      });
    }
    tasks_.spawn("control", [this] { return converse(); });
  }

  [[nodiscard]] bool is_serving() const {
    return std::ranges::all_of(control_.proxies(), [](const auto& offered) {
      return offered.state == tunnel::ClientControl::Proxy::State::running;
    });
  }
  [[nodiscard]] std::string refusal() const {
    return control_.failure() ? control_.failure()->message : control_.proxies()[0].text;
  }
  Task<> serving() {
    CO_ASSERT_TRUE(
        co_await test::eventually([this] { return is_serving(); }, "proxies that serve"));
  }
  [[nodiscard]] const std::string& run_id() const { return control_.run_id(); }
  [[nodiscard]] const tunnel::ClientControl& control() const { return control_; }
  tunnel::Link& link() { return *link_; }
  net::Channel& control_stream() { return *control_stream_; }
  // Closes its proxies.
  Task<> close_proxies() {
    control_.stop(Clock::now());
    co_await flush();
  }
  Task<> stop() {
    if (link_) {
      link_->close();
    } else {
      control_stream_->close();
    }
    tasks_.cancel();
    co_await tasks_.join();
  }
  // A stream, or a connection without yamux.
  std::unique_ptr<net::Channel> open() { return link_ ? link_->open().value() : dial_(); }

  std::vector<std::string> requests;
  std::size_t started = 0;  // work connections with a user
  int asked = 0;            // for work connections
  std::string work_error;   // of the last one that was refused
  std::optional<Error> ending;
  bool holds_answers = false;

 private:
  static tunnel::Login login_of(const ScriptedClientOptions& options) {
    tunnel::Login login{.version = "0.70.0",
                        .run_id = options.run_id,
                        .pool_count = options.pool,
                        .max_work_conns = options.max_work};
    if (!options.instance.empty()) {
      login.metas.emplace(tunnel::kInstanceMeta, Secret(options.instance));
    }
    return login;
  }
  Task<> flush() {
    const auto output = std::exchange(control_.output(), {});
    if (!output.empty()) (void)co_await control_stream_->write(output);
  }

  Task<> converse() {
    control_stream_ = open();
    std::array<char, 4096> room;
    std::vector<tunnel::ClientControl::Event> events;
    while (true) {
      co_await flush();
      control_stream_->set_read_deadline(control_.due());
      const auto size = co_await control_stream_->read_some(room);
      if (size && *size == 0) break;
      if (!size && size.error().code != ErrorCode::timeout) break;
      events.clear();
      if (size) control_.receive(std::span(room).first(*size), Clock::now(), events);
      control_.tick(Clock::now());
      for (const auto& event : events) {
        if (event.what != tunnel::ClientControl::Event::What::work_wanted) continue;
        ++asked;
        if (options_.brings_work && asked > options_.ignored_work)
          tasks_.spawn("work", [this] { return work(); });
      }
      changed_.notify_all();
      if (control_.failure()) break;
    }
    if (!ending) ending = Error{.message = "the control stream ended"};
    changed_.notify_all();
  }

  Task<> work() {
    auto opened = open();
    if (!co_await opened->write(control_.work_offer(Clock::now()).value())) co_return;
    tunnel::MessageReader reader(control_.wire());
    std::string received;
    std::optional<tunnel::Message> start;
    while (!start) {
      received += co_await read(*opened);
      if (received.starts_with("(")) co_return;
      std::string_view bytes = received;
      auto message = reader.next(bytes);
      if (!message) co_return;
      start = std::move(*message);
      received = bytes;
    }
    const auto& begin = std::get<tunnel::StartWorkConn>(*start);
    if (!begin.error.empty()) {
      work_error = begin.error;
      co_return;
    }
    const auto of_proxy =
        std::ranges::find(options_.proxies, begin.proxy_name, &tunnel::NewProxy::proxy_name);
    opened = tunnel::work_channel(
        std::move(opened),
        {.encryption = of_proxy->use_encryption, .compression = of_proxy->use_compression},
        options_.token, std::exchange(received, {}));
    auto& stream = *opened;
    ++started;
    while (options_.stalls) co_await sleep_for(std::chrono::seconds(1));
    while (true) {
      while (!received.contains("\r\n\r\n")) {
        const auto part = co_await read(stream);
        if (part.starts_with("(")) co_return;
        received += part;
      }
      const auto end = received.find("\r\n\r\n") + 4;
      requests.push_back(received.substr(0, end));
      received.erase(0, end);
      changed_.notify_all();
      while (holds_answers) co_await changed_.wait(deadline_after(std::chrono::milliseconds(10)));
      const auto body = requests.back().contains(" /large ") ? std::string(2'000'000, 'x') : name_;
      if (!co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: " +
                                 std::to_string(body.size()) + "\r\n\r\n" + body)) {
        co_return;
      }
    }
  }

  std::string name_;
  ScriptedClientOptions options_;
  Dial dial_;
  std::optional<tunnel::Link> link_;  // none without yamux
  tunnel::ClientControl control_;
  std::unique_ptr<net::Channel> control_stream_;
  Event changed_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_server
