#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/net/memory_channel.hpp"
#include "common/net/relay.hpp"
#include "common/tunnel/link.hpp"
#include "common/tunnel/server_control.hpp"
#include "support/wait.hpp"

namespace gitops::tunnel_client {

inline const std::string kIv(Aes128Cfb::kIvSize, 'i');

// A connection that a test can cut without a word: its ends see neither bytes nor an end.
class Path {
 public:
  explicit Path(const Executor& executor) : tasks_(executor) {
    std::tie(near, near_) = net::MemoryChannel::pair(executor);
    std::tie(far, far_) = net::MemoryChannel::pair(executor);
    tasks_.spawn("path", [this] { return pass_on(); });
  }
  // To be called and awaited before it is destroyed.
  Task<> cut() {
    tasks_.cancel();
    co_await tasks_.join();
  }

  net::MemoryChannel::Ptr near;
  net::MemoryChannel::Ptr far;

 private:
  Task<> pass_on() {
    std::uint64_t there = 0;
    std::uint64_t back = 0;
    net::Buffer from_near(near_->reactor().blocks);
    net::Buffer from_far(near_->reactor().blocks);
    co_await net::relay({*near_, from_near, there}, {*far_, from_far, back},
                        std::chrono::hours(100));
  }

  net::MemoryChannel::Ptr near_;
  net::MemoryChannel::Ptr far_;
  TaskGroup tasks_;
};

// The server of a tunnel on the other end of a connection, which does what a test tells it.
class ScriptedServer {
 public:
  ScriptedServer(const Executor& executor, std::unique_ptr<net::Channel> channel)
      : link_(std::move(channel), {.role = tunnel::yamux::Role::server},
              [this](std::unique_ptr<net::Channel> stream) {
                auto shared = std::shared_ptr<net::Channel>(std::move(stream));
                tasks_.spawn("stream", [this, shared] { return meet(shared); });
              }),
        changed_(executor),
        tasks_(executor) {
    tasks_.spawn("link", [this]() -> Task<> {
      co_await link_.run();
      has_ended = true;
      changed_.notify_all();
    });
  }

  // Sends a user's connection into the tunnel: the stream that carries it.
  Task<std::shared_ptr<net::Channel>> connect(std::string_view first_bytes) {
    EXPECT_TRUE(co_await test::eventually([this] { return !pool.empty() || has_ended; },
                                          "a work connection"));
    if (pool.empty()) throw std::runtime_error("no work connection");
    auto stream = pool.front();
    pool.pop_front();
    std::string bytes;
    EXPECT_TRUE(tunnel::append_message(
        bytes,
        tunnel::StartWorkConn{.proxy_name = proxies.front().proxy_name, .src_addr = "10.1.2.3"}));
    EXPECT_TRUE(co_await stream->write(bytes.append(first_bytes)));
    control->want_work();
    co_await flush();
    co_return stream;
  }
  Task<> flush() {
    const auto output = std::exchange(control->output(), {});
    if (!output.empty()) (void)co_await control_stream->write(output);
  }
  Task<> stop() {
    link_.close();
    tasks_.cancel();
    co_await tasks_.join();
  }

  // Takes no further streams.
  void drain() { link_.drain(); }

  std::string run_id = "run-1";
  std::int64_t links = 1;
  std::vector<std::string> servers;
  // Why a proxy is refused; instead of proxy_error.
  std::function<std::string(const tunnel::NewProxy&)> judge;
  std::function<void(const std::string&)> on_closed;
  std::string login_error;  // refuse the login with it
  std::string proxy_error;  // refuse proxies with it
  bool is_silent = false;
  std::optional<tunnel::Login> login;
  std::optional<tunnel::ServerControl> control;
  std::shared_ptr<net::Channel> control_stream;
  std::deque<std::shared_ptr<net::Channel>> pool;
  std::vector<tunnel::NewProxy> proxies;
  int closed_proxies = 0;
  bool has_ended = false;

 private:
  Task<> meet(std::shared_ptr<net::Channel> stream) {
    std::array<char, 4096> room;
    tunnel::MessageReader reader;
    while (true) {
      const auto size = co_await stream->read_some(room);
      if (!size || *size == 0) co_return;
      if (is_silent) {
        control_stream = stream;
        co_return;
      }
      std::string_view bytes(room.data(), *size);
      auto message = reader.next(bytes);
      if (!message) co_return;
      if (!*message) continue;
      if (const auto* work = std::get_if<tunnel::NewWorkConn>(&**message)) {
        EXPECT_EQ(work->run_id, run_id);
        pool.push_back(stream);
        changed_.notify_all();
        co_return;
      }
      login = std::get<tunnel::Login>(**message);
      control_stream = stream;
      co_return co_await serve();
    }
  }

  Task<> serve() {
    if (!login_error.empty()) {
      std::string answer;
      tunnel::refuse_login(answer, "0.44.0", login_error);
      EXPECT_TRUE(co_await control_stream->write(answer));
      control_stream->shutdown_send();
      co_return;
    }
    control.emplace(tunnel::ServerControlOptions{.version = "0.44.0"}, *login, run_id, kIv);
    if (links > 1 || !servers.empty()) {
      // What frp's servers do not tell.
      std::string answer;
      EXPECT_TRUE(tunnel::append_message(
          answer, tunnel::LoginResp{
                      .version = "0.1.0", .run_id = run_id, .links = links, .servers = servers}));
      std::string_view output = control->output();
      EXPECT_TRUE(tunnel::MessageReader().next(output));
      control->output() = answer.append(output);
    }
    std::array<char, 4096> room;
    while (true) {
      co_await flush();
      const auto size = co_await control_stream->read_some(room);
      if (!size || *size == 0) co_return;
      std::vector<tunnel::ServerControl::Event> events;
      control->receive(std::span(room).first(*size), events);
      for (const auto& event : events) take(event);
      changed_.notify_all();
    }
  }

  void take(const tunnel::ServerControl::Event& event) {
    if (event.what == tunnel::ServerControl::Event::What::proxy_closed) {
      ++closed_proxies;
      if (on_closed) on_closed(event.proxy.proxy_name);
      return;
    }
    proxies.push_back(event.proxy);
    const auto error = judge ? judge(event.proxy) : proxy_error;
    if (error.empty()) {
      control->accept_proxy(event.proxy.proxy_name, "a.example.test");
    } else {
      control->refuse_proxy(event.proxy.proxy_name, error);
    }
  }

  tunnel::Link link_;
  Event changed_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_client
