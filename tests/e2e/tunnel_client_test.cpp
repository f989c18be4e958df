// The tunnel-client as a program, and servers that tell it what frp's do not: how many links they
// take, and of other servers.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/net/listener.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "tunnel-client/scripted_server.hpp"

namespace gitops::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using tunnel::ScriptedServer;

// A port on which each connection meets a server of its own.
class Host {
 public:
  explicit Host(const Executor& executor)
      : executor_(executor), listener_(executor), tasks_(executor) {
    port_ = listener_.listen({.address = "127.0.0.1"}).value();
    tasks_.spawn("accept", [this] {
      return listener_.run([this](std::unique_ptr<net::Channel> channel, const auto&) {
        auto& server =
            *sessions.emplace_back(std::make_unique<ScriptedServer>(executor_, std::move(channel)));
        server.run_id = "run-" + std::to_string(sessions.size());
        server.links = links;
        server.servers = servers;
        server.judge = judge;
      });
    });
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Sessions that offer a proxy.
  long serving() const {
    return std::ranges::count_if(sessions, [](const auto& session) {
      return !session->has_ended && !session->proxies.empty() && session->closed_proxies == 0;
    });
  }
  Task<> stop() {
    listener_.close();
    tasks_.cancel();
    co_await tasks_.join();
    for (const auto& session : sessions) co_await session->stop();
  }

  std::int64_t links = 1;
  std::vector<std::string> servers;
  std::function<std::string(const tunnel::NewProxy&)> judge;
  std::vector<std::unique_ptr<ScriptedServer>> sessions;

 private:
  Executor executor_;
  net::Listener listener_;
  std::uint16_t port_ = 0;
  TaskGroup tasks_;
};

class Client {
 public:
  explicit Client(const Host& server, const std::string& more = "--log-level=info")
      : process_(
            {.argv = {std::string(GITOPS_BIN_DIR) + "/tunnel-client",
                      "--tunnel-server.host=" + server.address(), "--tunnel-server.protocol=tcp",
                      "--tunnel-server.tls=false", "--tunnel.subdomain-prefix=acc-rt",
                      "--admin-address=127.0.0.1", "--admin-port=0", more},
             .log_file = folder_ / "log"}) {
    constexpr std::string_view kKey = R"("admin_port":)";
    require_until([&] { return log().contains(kKey); }, seconds(20), "the start");
    admin_port_ = std::atoi(log().c_str() + log().find(kKey) + kKey.size());
  }
  std::string log() const { return read_file(folder_ / "log"); }
  HttpReply admin(const std::string& path, const std::string& method = "GET") const {
    return http_call(
        {.method = method, .url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
  }
  Process& process() { return process_; }

 private:
  TempDir folder_;
  Process process_;
  int admin_port_ = 0;
};

Task<bool> until(std::function<bool()> condition) {
  const auto deadline = deadline_after(seconds(20));
  while (!condition()) {
    if (Clock::now() > deadline) co_return false;
    co_await sleep_for(milliseconds(20));
  }
  co_return true;
}

TEST(TunnelClient, FollowsWhatAServerTells) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Host first(executor);
        Host second(executor);
        first.links = 3;
        first.servers = {second.address(), "no address at all", second.address()};
        second.servers = {first.address()};
        Client client(first);
        // Two of three, as the setting says; and one of a server that takes no more.
        EXPECT_TRUE(co_await until([&] { return first.serving() == 2 && second.serving() == 1; }))
            << client.log();
        const auto status = client.admin("/statusz").body;
        EXPECT_THAT(status, HasSubstr(second.address() + " (another server told of it)"));
        EXPECT_THAT(status, HasSubstr("link 2: not kept"));
        EXPECT_TRUE(co_await until([&] {
          return client.admin("/metrics")
              .body.contains(R"(gitops_tunnel_client_link_serving{link="1",server="told"} 1)");
        }));

        // The other server goes, and nobody tells of it any more.
        first.servers.clear();
        EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
        EXPECT_TRUE(
            co_await until([&] { return first.sessions.size() == 4 && first.serving() == 2; }));
        co_await second.stop();
        EXPECT_TRUE(co_await until([&] {
          return !client.admin("/statusz").body.contains(second.address());
        })) << client.admin("/statusz").body;
        EXPECT_TRUE(client.admin("/readyz").ok());

        client.process().signal(SIGTERM);
        EXPECT_TRUE(co_await until([&] { return first.serving() == 0; }));
        EXPECT_EQ(client.process().wait(seconds(10)), 0);
        co_await first.stop();
      },
      seconds(90));
}

// As in a pod that started before its Secret was right, with a server that takes one session.
TEST(TunnelClient, UsesANewTokenWhenTheOldOneIsRefused) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        TempDir folder;
        write_file(folder / "token", "wrong");
        Host host(executor);
        host.judge = [](const tunnel::NewProxy& proxy) -> std::string {
          const auto token = proxy.metas.find("Authorization");
          const bool right = token != proxy.metas.end() && token->second.reveal() == "right one";
          return right ? "" : "unknown token";
        };
        Client client(host, "--authorization-file=" + (folder / "token").string());
        EXPECT_TRUE(co_await until([&] {
          return client.admin("/readyz").body.contains("refused: unknown token");
        })) << client.admin("/readyz").body;
        write_file(folder / "token", "right one");
        EXPECT_TRUE(co_await until([&] { return client.admin("/readyz").ok(); })) << client.log();
        EXPECT_THAT(client.log(), Not(HasSubstr("right one")));
        client.process().signal(SIGTERM);
        EXPECT_TRUE(co_await until([&] { return host.serving() == 0; }));
        co_await host.stop();
      },
      seconds(90));
}

}  // namespace
}  // namespace gitops::test
