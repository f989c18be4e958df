#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "common/core/task_group.hpp"
#include "common/net/connector.hpp"
#include "common/net/listener.hpp"
#include "common/net/resolve.hpp"
#include "common/net/tls_channel.hpp"
#include "common/net/tls_context.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

namespace gitops::http {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr int kConnections = 40;

// Files that one thread replaces while others read them: certificate and key of one of two
// authorities, in two steps, so that at times they do not match; and a bundle that changes but
// always trusts both authorities.
class RotatingFiles {
 public:
  RotatingFiles() {
    const auto one = test::read_file(first_.ca_file());
    const auto two = test::read_file(second_.ca_file());
    bundles_ = {one + two, two + one};
    install(0);
    writer_ = std::jthread([this](const std::stop_token& stop) {
      for (std::size_t i = 1; !stop.stop_requested(); ++i) install(i % 2);
    });
  }

  [[nodiscard]] net::TlsOptions server() const {
    return {.certificate_file = folder_ / "cert.pem", .key_file = folder_ / "key.pem"};
  }
  [[nodiscard]] net::TlsOptions client() const {
    return {.ca_file = folder_ / "ca.pem", .server_name = "localhost"};
  }

 private:
  void install(std::size_t which) const {
    replace("cert.pem", test::read_file(identities_.at(which).cert_file));
    replace("key.pem", test::read_file(identities_.at(which).key_file));
    replace("ca.pem", bundles_.at(which));
  }
  void replace(const std::string& name, const std::string& text) const {
    test::write_file(folder_ / (name + ".new"), text);
    fs::rename(folder_ / (name + ".new"), folder_ / name);
  }
  static test::Certificate issue(test::CertificateAuthority& authority) {
    return authority.issue(
        {.common_name = "server", .organization = {}, .alt_names = {"localhost"}});
  }

  test::TempDir folder_;
  test::CertificateAuthority first_{"First CA"};
  test::CertificateAuthority second_{"Second CA"};
  std::array<test::Certificate, 2> identities_{issue(first_), issue(second_)};
  std::array<std::string, 2> bundles_;
  std::jthread writer_;
};

// Accepts one connection and echoes its bytes.
Task<> serve_one(net::Listener& listener, std::shared_ptr<asio::ssl::context> context) {
  std::unique_ptr<net::Channel> accepted;
  co_await listener.run([&](std::unique_ptr<net::Channel> channel, const asio::ip::address&) {
    accepted = std::move(channel);
    listener.close();
  });
  net::TlsChannel channel(std::move(accepted), std::move(context));
  channel.set_deadline(deadline_after(seconds(10)));
  CO_ASSERT_OK(co_await channel.handshake_server());
  std::array<char, 64> buffer;
  const auto size = co_await channel.read_some(buffer);
  CO_ASSERT_OK(size);
  CO_ASSERT_OK(co_await channel.write(std::string_view(buffer.data(), *size)));
  channel.close();
}

// Looks up the server and talks to it with the current certificates of both sides.
Task<> connect_once(net::Resolver& resolver, net::TlsContext& server, net::TlsContext& client,
                    Clock::time_point now) {
  const auto executor = co_await asio::this_coro::executor;
  net::Listener listener(executor);
  const auto port = listener.listen({.address = "127.0.0.1"});
  CO_ASSERT_OK(port);
  const auto deadline = deadline_after(seconds(10));
  const auto served_with = server.get(now);
  CO_ASSERT_OK(served_with);
  TaskGroup tasks(executor);
  tasks.spawn("serve", [&listener, context = *served_with]() -> Task<> {
    co_await serve_one(listener, context);
  });

  resolver.look_again("localhost");
  auto plain = co_await net::connect_host(resolver, "localhost", *port, {}, deadline);
  CO_ASSERT_OK(plain);
  const auto trusted = client.get(now);
  CO_ASSERT_OK(trusted);
  auto channel =
      co_await net::start_tls(std::move(*plain), *trusted, client.options().server_name, deadline);
  CO_ASSERT_OK(channel);
  CO_ASSERT_OK(co_await (*channel)->write("hello"));
  std::array<char, 64> buffer;
  const auto size = co_await (*channel)->read_some(buffer);
  CO_ASSERT_OK(size);
  EXPECT_EQ(std::string_view(buffer.data(), *size), "hello");
  (*channel)->close();
  co_await tasks.join();
}

// Two loops with contexts of their own check the same files before every connection while the files
// are replaced. No connection may fail: a certificate without its matching key is not used.
TEST(TlsThreads, AC29_FilesRotateWhileConnectionsAreMade) {
  const test::LogCapture log;
  const RotatingFiles files;
  Metrics metrics;
  net::Resolver resolver(metrics);
  std::atomic<unsigned> reloads = 0;
  const auto connect_often = [&] {
    test::run_coro(
        [&]() -> Task<> {
          net::TlsContext server(net::TlsContext::Role::server, files.server());
          net::TlsContext client(net::TlsContext::Role::client, files.client());
          auto now = Clock::now();
          // The first look may fall between the two steps of a rotation.
          EXPECT_TRUE(co_await test::eventually([&] { return server.get(now).has_value(); },
                                                "a certificate with its key"));
          for (int i = 0; i < kConnections; ++i) {
            now += seconds(2);  // files are looked at once per second
            co_await connect_once(resolver, server, client, now);
          }
          reloads += server.generation() + client.generation();
        },
        seconds(60));
  };
  std::jthread other(connect_often);
  connect_often();
  other.join();
  EXPECT_GT(reloads.load(), 8U);
}

}  // namespace
}  // namespace gitops::http
