// The tunnel-client as a program, and servers that tell it what frp's do not: how many links they
// take, and of other servers.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/net/listener.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"
#include "tunnel-client/scripted_server.hpp"

namespace gitops::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using tunnel_client::ScriptedServer;

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
      : Client({"--tunnel-server.host=" + server.address(), more}) {}
  explicit Client(const std::vector<std::string>& flags)
      : process_({.argv = command(flags), .log_file = folder_ / "log"}) {
    constexpr std::string_view kKey = R"("admin_port":)";
    require_until([&] { return log().contains(kKey); }, seconds(20), "the start");
    admin_port_ = std::atoi(log().c_str() + log().find(kKey) + kKey.size());
  }
  std::string log() const { return read_file(folder_ / "log"); }
  HttpReply admin(const std::string& path, const std::string& method = "GET") const {
    return http_call(
        {.method = method, .url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
  }
  StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> command(const std::vector<std::string>& flags) {
    std::vector<std::string> argv{std::string(GITOPS_BIN_DIR) + "/tunnel-client",
                                  "--tunnel-server.protocol=tcp",
                                  "--tunnel-server.tls=false",
                                  "--tunnel.subdomain-prefix=acc-rt",
                                  "--admin-address=127.0.0.1",
                                  "--admin-port=0"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }

  TempDir folder_;
  Process process_;
  int admin_port_ = 0;
};

// Whether this is the entry of the server.
bool is_of(const nlohmann::json& entry, const Host& server) {
  return entry["name"].get<std::string>().contains(server.address());
}

// Whether the client's status has an entry of the server.
bool knows(const Client& client, const Host& server) {
  return client.status().count_if([&](const auto& entry) { return is_of(entry, server); }) > 0;
}

// The one test of the whole text; the others compare its entries.
TEST(TunnelClient, ItsStatusAsTextHasALineForEachLink) {
  run_coro(
      []() -> Task<> {
        Host server(co_await asio::this_coro::executor);
        Client client(server);
        const testing::Matcher<const std::string&> serves = testing::MatchesRegex(
            "tunnel-client [0-9.]+\n"
            "up [0-9hms]+\n"
            "ready\n"
            "\n"
            "state: serving\n"
            "server tcp://127.0.0.1:[0-9]+\n"
            "  link 1: serving since 20[0-9T:-]+Z, (server version: [^,]+, )?0 connections, "
            "0 requests in total, 0 bytes from users, 0 bytes to users\n"
            "  link 2: not kept, since the server takes fewer\n");
        std::string text;
        EXPECT_TRUE(co_await eventually(
            [&] {
              text = client.admin("/statusz").body;
              return serves.Matches(text);
            },
            "a status with both links"))
            << text;
        client.process().signal(SIGTERM);
        EXPECT_TRUE(
            co_await eventually([&] { return server.serving() == 0; }, "no link at the server"));
        EXPECT_EQ(client.process().wait(seconds(10)), 0);
        co_await server.stop();
      },
      seconds(60));
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
        EXPECT_TRUE(
            co_await eventually([&] { return first.serving() == 2 && second.serving() == 1; },
                                "two links to the first server and one to the second"))
            << client.log();
        const auto status = client.status();
        EXPECT_EQ(status.count_if([&](const nlohmann::json& entry) {
          return is_of(entry, second) && entry["message"] == "another server told of it";
        }),
                  1U)
            << status;
        EXPECT_EQ(status.count_if([](const nlohmann::json& entry) {
          return entry["name"] == "link 2" && entry["state"] == "unavailable" &&
                 entry["message"].get<std::string>().starts_with("not kept");
        }),
                  1U)
            << status;
        EXPECT_TRUE(co_await eventually(
            [&] {
              return client.admin("/metrics")
                  .body.contains(R"(gitops_tunnel_client_link_serving{link="1",server="told"} 1)");
            },
            "the metric of a link to the second server"));

        // The other server goes, and nobody tells of it any more.
        first.servers.clear();
        EXPECT_TRUE(client.admin("/links/replace", "POST").ok());
        EXPECT_TRUE(
            co_await eventually([&] { return first.sessions.size() == 4 && first.serving() == 2; },
                                "new sessions at the first server"));
        co_await second.stop();
        EXPECT_TRUE(co_await eventually([&] { return !knows(client, second); },
                                        "a status without the second server"))
            << client.status();
        EXPECT_TRUE(client.admin("/readyz").ok());

        client.process().signal(SIGTERM);
        EXPECT_TRUE(co_await eventually([&] { return first.serving() == 0; },
                                        "the end of the links to the first server"));
        EXPECT_EQ(client.process().wait(seconds(10)), 0);
        co_await first.stop();
      },
      seconds(90));
}

TEST(TunnelClient, TakesOverChangedSettingsWithoutLosingAStream) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        TempDir folder;
        const auto file = folder / "config.yaml";
        write_file(folder / "token-1", "one");
        write_file(folder / "token-2", "two");
        Host first(executor);
        Host second(executor);
        first.links = second.links = 4;
        const auto write_settings = [&](const std::string& hosts, const std::string& more) {
          write_file(folder / "next", "tunnel-server.host: [" + hosts + "]\n" + more);
          std::filesystem::rename(folder / "next", file);
        };
        const auto token = [&](int number) {
          return "authorization-file: " + (folder / ("token-" + std::to_string(number))).string() +
                 "\n";
        };
        write_settings("'" + first.address() + "'", token(1));
        net::Listener upstream(executor);
        const auto port = upstream.listen({.address = "127.0.0.1"}).value();
        std::vector<std::unique_ptr<net::Channel>> connections;
        TaskGroup tasks(executor);
        tasks.spawn("upstream", [&] {
          return upstream.run([&](std::unique_ptr<net::Channel> channel, const auto&) {
            connections.push_back(std::move(channel));
          });
        });
        Client client({"--config=" + file.string(), "--tunnel.forward-to.host=127.0.0.1",
                       "--tunnel.forward-to.port=" + std::to_string(port)});
        EXPECT_TRUE(co_await eventually([&] { return first.serving() == 2; },
                                        "two links to the first server"))
            << client.log();

        // A user whose request takes longer than everything that follows.
        const auto user =
            co_await first.sessions[0]->connect("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_TRUE(co_await eventually([&] { return connections.size() == 1; },
                                        "a connection to the upstream"));
        const auto is_carried = [&]() -> Task<bool> {
          std::array<char, 64> room;
          if (!co_await connections[0]->write("event")) co_return false;
          user->set_read_deadline(deadline_after(seconds(30)));
          const auto size = co_await user->read_some(room);
          co_return size&& std::string_view(room.data(), *size) == "event";
        };

        // More links, another pool, another token's file.
        write_settings("'" + first.address() + "'",
                       token(2) + "tunnel-server.links: 3\ntunnel.pool-size: 4\n");
        EXPECT_TRUE(co_await eventually(
            [&] {
              const auto& last = *first.sessions.back();
              return first.serving() == 3 && last.login && last.login->pool_count == 4 &&
                     !last.proxies.empty() &&
                     last.proxies[0].metas.at("Authorization").reveal() == "two";
            },
            "three links with the new settings"))
            << client.status() << client.log();
        EXPECT_TRUE(co_await is_carried());

        // Mistakes change nothing; what needs a restart is named.
        write_settings("'" + first.address() + "'", "tunnel-server.links: many\n");
        EXPECT_TRUE(co_await eventually([&] { return client.log().contains("have mistakes"); },
                                        "the log line about mistakes"));
        write_settings("'" + first.address() + "'",
                       token(2) +
                           "tunnel-server.links: 2\ntunnel.pool-size: 4\n"
                           "tunnel.use-encryption: true\n");
        EXPECT_TRUE(co_await eventually(
            [&] { return client.log().contains(R"("setting":"tunnel.use-encryption")"); },
            "the log line about the setting"))
            << client.log();
        EXPECT_TRUE(co_await eventually([&] { return first.serving() == 2; },
                                        "two links to the first server"))
            << client.status();
        EXPECT_TRUE(co_await is_carried());

        // Another server in place of the first one, which keeps its user.
        write_settings("'" + second.address() + "'", token(2) + "tunnel.use-encryption: true\n");
        EXPECT_TRUE(
            co_await eventually([&] { return second.serving() == 2 && first.serving() == 0; },
                                "both links at the second server"))
            << client.status();
        EXPECT_TRUE(client.admin("/readyz").ok());
        EXPECT_TRUE(co_await is_carried());
        connections[0]->close();
        user->close();
        EXPECT_TRUE(co_await eventually([&] { return !knows(client, first); },
                                        "a status without the first server"))
            << client.status();

        client.process().signal(SIGTERM);
        EXPECT_TRUE(co_await eventually([&] { return second.serving() == 0; },
                                        "the end of the links to the second server"));
        EXPECT_EQ(client.process().wait(seconds(10)), 0);
        upstream.close();
        tasks.cancel();
        co_await tasks.join();
        co_await first.stop();
        co_await second.stop();
      },
      seconds(90));
}

// As with settings that name a file of a Secret that is mounted a moment later.
TEST(TunnelClient, TakesOverSettingsWhoseMistakePassesWithoutAChangeOfTheirFile) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        TempDir folder;
        const auto file = folder / "config.yaml";
        write_file(file, "tunnel-server.links: 1\n");
        Host host(executor);
        host.links = 4;
        Client client(host, "--config=" + file.string());
        EXPECT_TRUE(co_await eventually([&] { return host.serving() == 1; }, "the first link"))
            << client.log();
        const auto token = folder / "token";
        write_file(folder / "next",
                   "tunnel-server.links: 2\nauthorization-file: " + token.string() + "\n");
        std::filesystem::rename(folder / "next", file);
        EXPECT_TRUE(co_await eventually([&] { return client.log().contains("have mistakes"); },
                                        "the log line about the missing file"))
            << client.log();
        write_file(folder / "next", "canary");
        std::filesystem::rename(folder / "next", token);
        EXPECT_TRUE(co_await eventually([&] { return host.serving() == 2; }, "the second link"))
            << client.log();
        const auto log = client.log();
        EXPECT_EQ(log.find("have mistakes"), log.rfind("have mistakes")) << "is told once";
        client.process().signal(SIGTERM);
        EXPECT_TRUE(
            co_await eventually([&] { return host.serving() == 0; }, "the end of the links"));
        co_await host.stop();
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
        EXPECT_TRUE(co_await eventually(
            [&] { return client.admin("/readyz").body.contains("refused: unknown token"); },
            "the refusal in /readyz"))
            << client.admin("/readyz").body;
        write_file(folder / "token", "right one");
        EXPECT_TRUE(co_await eventually([&] { return client.admin("/readyz").ok(); }, "readiness"))
            << client.log();
        EXPECT_THAT(client.log(), Not(HasSubstr("right one")));
        client.process().signal(SIGTERM);
        EXPECT_TRUE(
            co_await eventually([&] { return host.serving() == 0; }, "the end of the links"));
        co_await host.stop();
      },
      seconds(90));
}

}  // namespace
}  // namespace gitops::test
