#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/net/connector.hpp"
#include "common/net/tls_channel.hpp"
#include "common/net/tls_context.hpp"
#include "common/tunnel/yamux_frame.hpp"
#include "daemons/tunnel_processes.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"
#include "tunnel-client/session.hpp"

// The tunnel-server with a client that serves, and hostile connections to it.
namespace gitops::test {

inline std::string flag(const std::string& name, const std::filesystem::path& value) {
  return "--" + name + "=" + value.string();
}

inline std::string frame(const tunnel::yamux::FrameHead& head, std::string_view payload = {}) {
  std::string out;
  append_frame_head(out, head);
  return out + std::string(payload);
}

// The first stream of a client, with these bytes on it.
inline std::string stream(std::string_view bytes) {
  return frame({.type = tunnel::yamux::FrameType::window_update,
                .flags = tunnel::yamux::kSyn,
                .stream = 1}) +
         frame({.stream = 1, .length = static_cast<std::uint32_t>(bytes.size())}, bytes);
}

inline std::string v1_head(char type, std::uint64_t length) {
  std::string out(1, type);
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift);
  return out;
}

// A proxy that a runtime with this token asks for.
inline tunnel::NewProxy proxy(const std::string& subdomain, const std::string& token) {
  tunnel::NewProxy made{.proxy_name = subdomain, .proxy_type = "http", .subdomain = subdomain};
  if (!token.empty()) made.metas.emplace("Authorization", Secret(token));
  return made;
}

// What becomes of a client: "serving", the server's reason for a refusal, or why its session ended.
inline std::string outcome(const OpenTunnelServer& server, const tunnel::NewProxy& wanted,
                           const std::optional<Certificate>& certificate = {},
                           bool has_tls = false) {
  std::string result;
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        Metrics metrics;
        net::Resolver names(metrics);
        auto channel = co_await net::connect_host(names, "127.0.0.1",
                                                  static_cast<std::uint16_t>(server.tunnel_port),
                                                  {}, deadline_after(std::chrono::seconds(5)));
        CO_ASSERT_OK(channel);
        if (certificate || has_tls) {
          const auto own = certificate.value_or(Certificate{});
          net::TlsContext context(net::TlsContext::Role::client,
                                  {.ca_file = server.ca_file().string(),
                                   .certificate_file = own.cert_file.string(),
                                   .key_file = own.key_file.string()});
          channel = co_await net::start_tls(std::move(*channel), context.get(Clock::now()).value(),
                                            "localhost", deadline_after(std::chrono::seconds(5)));
          CO_ASSERT_OK(channel);
        }
        tunnel_client::Session::Options options;
        options.control = {
            .login = {.version = "1.0.0"}, .token = Secret("s3cret"), .proxies = {wanted}};
        tunnel_client::Traffic traffic(metrics, {{"link", "1"}});
        Event changed(executor);
        tunnel_client::Session session(
            executor, std::move(*channel), std::move(options),
            [](const std::string&, Deadline) -> Task<Result<std::unique_ptr<net::Channel>>> {
              co_return fail(ErrorCode::unavailable, "no upstream");
            },
            traffic, changed);
        std::optional<Error> ending;
        TaskGroup tasks(executor);
        tasks.spawn("session", [&]() -> Task<> {
          ending = co_await session.run();
          changed.notify_all();
        });
        const auto deadline = deadline_after(std::chrono::seconds(20));
        using State = tunnel_client::Session::State;
        while (!ending && session.state() != State::serving && session.refusal().empty() &&
               Clock::now() < deadline) {
          co_await changed.wait(deadline);
        }
        result = session.state() == State::serving ? "serving" : session.refusal();
        if (ending) result = "ended: " + ending->message;
        session.close("done");
        co_await tasks.join();
      },
      std::chrono::seconds(30));
  return result;
}

// A server with the client of the runtime acc-rt, behind which an upstream answers "router". The
// runtime acc-b has the token "token-b".
struct TunnelAttacks : testing::Test {
  static void SetUpTestSuite() {
    // Of the programs: what a sanitizer keeps of freed memory would hide the server's own.
    setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 1);
  }
  void start(std::vector<std::string> flags = {}, std::vector<std::string> client_flags = {}) {
    write_file(folder / "runtimes",
               std::string(kRuntimePrefix) + " " + kRuntimeToken + "\nacc-b token-b\n");
    flags.push_back(flag("runtimes-file", folder / "runtimes"));
    server.emplace(std::move(flags));
    write_file(folder / "token", "s3cret");
    client_flags.push_back(flag("tunnel-server.token-file", folder / "token"));
    client.emplace(std::vector{static_cast<std::uint16_t>(server->tunnel_port)}, server->ca_file(),
                   upstream.port(), client_flags);
    require_until([this] { return serves(); }, std::chrono::seconds(20), "the tunnel");
  }
  // The runtime's client serves, and is the only one.
  [[nodiscard]] bool serves() const { return server->call("GET", "/").body == "router"; }
  // Sends bytes to the port for clients; whether the server ends the connection.
  [[nodiscard]] bool is_closed_after(std::string_view bytes) const {
    RawSocket socket(static_cast<std::uint16_t>(server->tunnel_port), std::chrono::seconds(15));
    socket.send(bytes);
    return socket.closed();
  }
  [[nodiscard]] std::size_t memory() const {
    const auto text = read_file("/proc/" + std::to_string(server->process().pid()) + "/statm");
    return std::stoul(text.substr(text.find(' '))) * 4096;
  }

  TempDir folder;
  RecordingUpstream upstream{"router"};
  mutable std::optional<OpenTunnelServer> server;
  std::optional<OwnTunnelClient> client;
};

}  // namespace gitops::test
