#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/core/crypto.hpp"
#include "common/net/memory_channel.hpp"
#include "common/proxy/server.hpp"
#include "common/tunnel/client_control.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "tunnel-server/client_registry.hpp"
#include "tunnel-server/scripted_client.hpp"
#include "tunnel-server/vhost_proxy.hpp"

// Clients, hosts, traffic and edge of a tunnel-server, with scripted clients and users in memory.
namespace gitops::tunnel_server {

inline const asio::ip::address kClientAddress = asio::ip::make_address("10.0.0.1");
inline const asio::ip::address kUserAddress = asio::ip::make_address("203.0.113.9");

class ClientsFixture {
 public:
  explicit ClientsFixture(const Executor& executor, Authorizer::Options authorizer_options,
                          ClientRegistry::Options client_options = {})
      : executor_(executor),
        names_(metrics),
        authorizer_(executor, names_, std::move(authorizer_options)),
        traffic(metrics),
        clients(executor, authorizer_, table, metrics, with_defaults(std::move(client_options))),
        vhost_proxy_(table, traffic,
                     {.trusted_proxies = net::AddressList::parse({"10.9.0.0/16"}).value(),
                      .max_requests_per_host = 300,
                      .limits = {.websocket = true},
                      .session = [this](SessionId id) { return clients.session(id); },
                      .ban = [this](const std::string& domain) { return clients.ban_of(domain); }}),
        users_(executor, {}, vhost_proxy_.policy()) {
    table.changed = [this](HostTable::Host& host) { vhost_proxy_.update(host); };
  }

  static ClientRegistry::Options with_defaults(ClientRegistry::Options options) {
    options.session.control.version = "1.0.0";
    options.subdomain_host = "example.test";
    return options;
  }

  // A new connection to the port for clients.
  std::unique_ptr<net::Channel> connect(std::size_t capacity = 64 * 1024) {
    auto [near, far] = net::MemoryChannel::pair(executor_, capacity);
    clients.adopt(std::move(far), kClientAddress);
    return std::move(near);
  }
  // The same, by a cable that can be cut: from then on its bytes are lost, and nobody is told.
  struct Cable {
    explicit Cable(const Executor& executor) : tasks(executor) {}
    bool is_cut = false;
    std::vector<std::unique_ptr<net::Channel>> ends;
    TaskGroup tasks;
  };
  std::unique_ptr<net::Channel> connect_by(Cable& cable) {
    auto [near, far] = net::MemoryChannel::pair(executor_);
    cable.ends.push_back(std::move(far));
    cable.ends.push_back(connect());
    auto* client = cable.ends[cable.ends.size() - 2].get();
    auto* server = cable.ends.back().get();
    const auto carry = [&cable](net::Channel* from, net::Channel* to) -> Task<> {
      std::array<char, 16 * 1024> room;
      while (true) {
        const auto size = co_await from->read_some(room);
        if (!size || *size == 0) break;
        if (cable.is_cut) continue;
        if (!co_await to->write(std::string_view(room.data(), *size))) break;
      }
      if (!cable.is_cut) to->shutdown_send();
    };
    cable.tasks.spawn("to server", [=] { return carry(client, server); });
    cable.tasks.spawn("to client", [=] { return carry(server, client); });
    return std::move(near);
  }
  ScriptedClient& add_by(Cable& cable, std::string name, ScriptedClientOptions options) {
    return *all_.emplace_back(std::make_unique<ScriptedClient>(
        executor_, [this, &cable] { return connect_by(cable); }, std::move(name),
        std::move(options)));
  }
  ScriptedClient& add(std::string name, ScriptedClientOptions options = {}) {
    return *all_.emplace_back(std::make_unique<ScriptedClient>(
        executor_, [this] { return connect(); }, std::move(name), std::move(options)));
  }
  std::unique_ptr<net::Channel> user(const asio::ip::address& address = kUserAddress) {
    auto [near, far] = net::MemoryChannel::pair(executor_);
    users_.adopt(std::move(far),
                 {.address = address, .text = address.to_string(), .tls = false, .use = {}});
    return std::move(near);
  }
  // The status and, for 200, the body of a request.
  Task<std::string> get(std::string host = "acc-rt.example.test", std::string more = {},
                        std::string target = "/") {
    auto channel = user();
    EXPECT_TRUE(co_await channel->write("GET " + target + " HTTP/1.1\r\nHost: " + host +
                                        "\r\nConnection: close\r\n" + more + "\r\n"));
    co_return co_await answer(*channel);
  }
  static Task<std::string> answer(net::Channel& channel) {
    std::string all;
    while (true) {
      const auto part = co_await read(channel);
      if (part.starts_with("(")) break;
      all += part;
    }
    const auto status = all.substr(0, all.find("\r\n"));
    if (!status.contains(" 200 ")) co_return status.substr(std::min<std::size_t>(9, status.size()));
    co_return all.substr(all.find("\r\n\r\n") + 4);
  }
  proxy::Server& users() { return users_; }
  void release_clients() { vhost_proxy_.release_clients(); }
  Task<> stop() {
    co_await users_.stop(Clock::now());
    for (const auto& client : all_) co_await client->stop();
    co_await clients.stop();
  }

  Metrics metrics;

 private:
  Executor executor_;
  net::Resolver names_;
  Authorizer authorizer_;

 public:
  Traffic traffic;
  HostTable table;
  ClientRegistry clients;

 private:
  VhostProxy vhost_proxy_;
  proxy::Server users_;
  std::vector<std::unique_ptr<ScriptedClient>> all_;
};

inline void run_with(const std::function<Authorizer::Options()>& authorizer,
                     ClientRegistry::Options options,
                     const std::function<Task<>(ClientsFixture&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    ClientsFixture bed(co_await asio::this_coro::executor, authorizer(), options);
    co_await body(bed);
    co_await bed.stop();
    EXPECT_EQ(bed.clients.size(), 0u);
    EXPECT_EQ(bed.table.size(), 0u);
  });
}

inline void run(const std::function<Task<>(ClientsFixture&)>& body,
                ClientRegistry::Options options = {}) {
  run_with([] { return Authorizer::Options{.token = Secret("s3cret")}; }, std::move(options), body);
}

// Each runtime has a token: token-a for acc-rt, token-b for acc-b.
inline void run_with_runtimes(const std::function<Task<>(ClientsFixture&)>& body) {
  test::TempDir folder;
  test::write_file(folder / "runtimes", "acc-rt token-a\nacc-rt token-a2\nacc-b token-b\n");
  run_with(
      [&] {
        return Authorizer::Options{.token = Secret("s3cret"),
                                   .runtimes_file = (folder / "runtimes").string()};
      },
      {}, body);
}

}  // namespace gitops::tunnel_server
