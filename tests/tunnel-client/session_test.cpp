#include "tunnel-client/session.hpp"

#include <array>
#include <deque>
#include <optional>

#include <gmock/gmock.h>

#include "common/net/memory_channel.hpp"
#include "common/tunnel/server_control.hpp"
#include "support/run_coro.hpp"

namespace gitops::tunnel {
namespace {

using net::Channel;
using std::chrono::seconds;
using testing::HasSubstr;

const std::string kIv(Aes128Cfb::kIvSize, 'i');

// A server on the other end of a connection, which does what a test tells it.
class Server {
 public:
  Server(const Executor& executor, std::unique_ptr<Channel> channel)
      : link_(std::move(channel), {.role = yamux::Role::server},
              [this](std::unique_ptr<Channel> stream) {
                auto shared = std::shared_ptr<Channel>(std::move(stream));
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

  Task<> until(const std::function<bool()>& condition) {
    while (!condition()) co_await changed_.wait(deadline_after(seconds(60)));
  }
  // Sends a user's connection into the tunnel: the stream that carries it.
  Task<std::shared_ptr<Channel>> connect(std::string_view first_bytes) {
    co_await until([this] { return !pool.empty() || has_ended; });
    auto stream = pool.front();
    pool.pop_front();
    std::string bytes;
    EXPECT_TRUE(append_message(bytes, StartWorkConn{.proxy_name = "a", .src_addr = "10.1.2.3"}));
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

  std::string login_error;  // refuse the login with it
  std::string proxy_error;  // refuse proxies with it
  bool is_silent = false;
  std::optional<Login> login;
  std::optional<ServerControl> control;
  std::shared_ptr<Channel> control_stream;
  std::deque<std::shared_ptr<Channel>> pool;
  std::vector<NewProxy> proxies;
  int closed_proxies = 0;
  bool has_ended = false;

 private:
  Task<> meet(std::shared_ptr<Channel> stream) {
    std::array<char, 4096> room;
    MessageReader reader;
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
      if (const auto* work = std::get_if<NewWorkConn>(&**message)) {
        EXPECT_EQ(work->run_id, "run-1");
        pool.push_back(stream);
        changed_.notify_all();
        co_return;
      }
      login = std::get<Login>(**message);
      control_stream = stream;
      co_return co_await serve();
    }
  }

  Task<> serve() {
    if (!login_error.empty()) {
      std::string answer;
      refuse_login(answer, "0.44.0", login_error);
      EXPECT_TRUE(co_await control_stream->write(answer));
      control_stream->shutdown_send();
      co_return;
    }
    control.emplace(ServerControlOptions{.version = "0.44.0"}, *login, "run-1", kIv);
    std::array<char, 4096> room;
    while (true) {
      co_await flush();
      const auto size = co_await control_stream->read_some(room);
      if (!size || *size == 0) co_return;
      std::vector<ServerControl::Event> events;
      control->receive(std::span(room).first(*size), events);
      for (const auto& event : events) take(event);
      changed_.notify_all();
    }
  }

  void take(const ServerControl::Event& event) {
    if (event.what == ServerControl::Event::What::proxy_closed) {
      ++closed_proxies;
      return;
    }
    proxies.push_back(event.proxy);
    if (proxy_error.empty()) {
      control->accept_proxy(event.proxy.proxy_name, "a.example.test");
    } else {
      control->refuse_proxy(event.proxy.proxy_name, proxy_error);
    }
  }

  Link link_;
  Event changed_;
  TaskGroup tasks_;
};

// A session, its server, and the upstream that it connects to.
struct Bed {
  explicit Bed(const Executor& executor) : changed(executor), tasks(executor), traffic(metrics) {
    auto [near, far] = net::MemoryChannel::pair(executor);
    server.emplace(executor, std::move(far));
    Session::Options options;
    options.control.login = {.version = "1.0.0", .pool_count = 1};
    options.control.proxies = {{.proxy_name = "a",
                                .proxy_type = "http",
                                .metas = {{"Authorization", Secret("token")}},
                                .subdomain = "a",
                                .locations = {"/"}}};
    session.emplace(
        executor, std::move(near), options,
        [this, executor](Deadline) -> Task<Result<std::unique_ptr<Channel>>> {
          if (upstream_is_down) co_return fail(ErrorCode::unavailable, "connection refused");
          auto [ours, theirs] = net::MemoryChannel::pair(executor);
          upstream.push_back(std::move(theirs));
          changed.notify_all();
          co_return std::move(ours);
        },
        traffic, changed);
    tasks.spawn("session", [this]() -> Task<> {
      ending = co_await session->run();
      changed.notify_all();
    });
  }

  Task<> until(const std::function<bool()>& condition) {
    while (!condition()) {
      co_await changed.wait(deadline_after(std::chrono::milliseconds(10)));
    }
  }
  Task<> until(Session::State state) {
    co_await until([this, state] { return session->state() == state; });
  }
  Task<Channel*> next_upstream() {
    const auto before = upstream.size();
    co_await until([&] { return upstream.size() > before; });
    co_return upstream.back().get();
  }

  Metrics metrics;
  Event changed;
  TaskGroup tasks;
  Traffic traffic;
  std::optional<Server> server;
  std::vector<std::unique_ptr<Channel>> upstream;
  bool upstream_is_down = false;
  std::optional<Session> session;
  std::optional<Error> ending;
};

void run(const std::function<Task<>(Bed&)>& body) {
  test::run_in_test_time([&]() -> Task<> {
    Bed bed(co_await asio::this_coro::executor);
    co_await body(bed);
    co_await bed.server->stop();
    co_await bed.tasks.join();
    EXPECT_TRUE(bed.ending);
  });
}

Task<std::string> read(Channel& channel) {
  std::array<char, 4096> room;
  const auto size = co_await channel.read_some(room);
  if (!size) co_return "(" + size.error().message + ")";
  co_return *size == 0 ? "(end)" : std::string(room.data(), *size);
}

TEST(TunnelSession, RegistersItsProxyWithTheToken) {
  run([](Bed& bed) -> Task<> {
    EXPECT_EQ(bed.session->state(), Session::State::logging_in);
    co_await bed.until(Session::State::serving);
    EXPECT_EQ(bed.session->run_id(), "run-1");
    EXPECT_EQ(bed.session->server_version(), "0.44.0");
    CO_ASSERT_EQ(bed.server->proxies.size(), 1u);
    EXPECT_EQ(bed.server->proxies[0].metas.at("Authorization").reveal(), "token");
  });
}

TEST(TunnelSession, RelaysARequestToTheUpstream) {
  run([](Bed& bed) -> Task<> {
    // The request comes in the same bytes as the message before it.
    auto user = co_await bed.server->connect("GET / HTTP/1.1\r\n\r\n");
    co_await bed.until([&] { return !bed.upstream.empty(); });
    auto& upstream = *bed.upstream.front();
    EXPECT_EQ(co_await read(upstream), "GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(bed.session->carrying(), 1u);
    CO_ASSERT_OK(co_await upstream.write("HTTP/1.1 204 No Content\r\n\r\n"));
    EXPECT_EQ(co_await read(*user), "HTTP/1.1 204 No Content\r\n\r\n");
    user->shutdown_send();
    EXPECT_EQ(co_await read(upstream), "(end)");
    upstream.shutdown_send();
    EXPECT_EQ(co_await read(*user), "(end)");
    co_await bed.until([&] { return bed.session->carrying() == 0; });
    EXPECT_EQ(bed.traffic.connections.Value(), 1);
    EXPECT_EQ(bed.traffic.open_connections.Value(), 0);
    EXPECT_EQ(bed.traffic.bytes_from_server.Value(), 18);
    EXPECT_EQ(bed.traffic.bytes_to_server.Value(), 27);
  });
}

// frp knows no half-close. Without this an abandoned download would hold its connection to the
// upstream until the idle timeout, for nobody reads what fills the window.
TEST(TunnelSession, AUserWhoLeavesFreesTheUpstream) {
  run([](Bed& bed) -> Task<> {
    auto user = co_await bed.server->connect("GET /large HTTP/1.1\r\n\r\n");
    co_await bed.until([&] { return !bed.upstream.empty(); });
    auto& upstream = *bed.upstream.front();
    EXPECT_EQ(co_await read(upstream), "GET /large HTTP/1.1\r\n\r\n");
    user->shutdown_send();
    upstream.set_write_deadline(deadline_after(seconds(60)));
    const std::string block(64 * 1024, 'x');
    Result<void> written;
    while (written) written = co_await upstream.write(block);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    co_await bed.until([&] { return bed.session->carrying() == 0; });
  });
}

TEST(TunnelSession, CarriesManyConnectionsAtATime) {
  run([](Bed& bed) -> Task<> {
    std::vector<std::shared_ptr<Channel>> users;
    for (std::size_t i = 0; i < 50; ++i) {
      users.push_back(co_await bed.server->connect("request " + std::to_string(i)));
      co_await bed.until([&] { return bed.upstream.size() == i + 1; });
    }
    EXPECT_EQ(bed.session->carrying(), 50u);
    for (std::size_t i = 50; i-- > 0;) {
      EXPECT_EQ(co_await read(*bed.upstream[i]), "request " + std::to_string(i));
      CO_ASSERT_OK(co_await bed.upstream[i]->write("answer " + std::to_string(i)));
      EXPECT_EQ(co_await read(*users[i]), "answer " + std::to_string(i));
    }
  });
}

TEST(TunnelSession, ClosesTheConnectionWhenTheUpstreamIsDown) {
  run([](Bed& bed) -> Task<> {
    bed.upstream_is_down = true;
    auto user = co_await bed.server->connect("x");
    EXPECT_THAT(co_await read(*user), HasSubstr("("));
    EXPECT_EQ(bed.traffic.failed_connections.Value(), 1);
    EXPECT_EQ(bed.session->state(), Session::State::serving);
  });
}

TEST(TunnelSession, EndsWithTheServersReasonWhenItMayNotLogIn) {
  run([](Bed& bed) -> Task<> {
    bed.server->login_error = "token in login doesn't match";
    co_await bed.until([&] { return bed.ending.has_value(); });
    EXPECT_EQ(bed.ending->code, ErrorCode::forbidden);
    EXPECT_THAT(bed.ending->message, HasSubstr("token in login doesn't match"));
  });
}

TEST(TunnelSession, SaysWhyTheProxyIsRefusedAndAsksAgain) {
  run([](Bed& bed) -> Task<> {
    bed.server->proxy_error = "invalid token";
    co_await bed.until(Session::State::refused);
    EXPECT_EQ(bed.session->refusal(), "invalid token");
    bed.server->proxy_error.clear();
    co_await bed.until(Session::State::serving);
    EXPECT_EQ(bed.session->refusal(), "");
  });
}

TEST(TunnelSession, EndsWhenTheServerDoesNotAnswerTheLogin) {
  run([](Bed& bed) -> Task<> {
    bed.server->is_silent = true;
    const auto start = Clock::now();
    co_await bed.until([&] { return bed.ending.has_value(); });
    EXPECT_EQ(bed.ending->code, ErrorCode::timeout);
    EXPECT_LE(Clock::now() - start, seconds(11));
  });
}

TEST(TunnelSession, EndsWithTheControlStream) {
  run([](Bed& bed) -> Task<> {
    co_await bed.until(Session::State::serving);
    auto user = co_await bed.server->connect("x");
    bed.server->control_stream->shutdown_send();
    co_await bed.until([&] { return bed.ending.has_value(); });
    EXPECT_EQ(bed.ending->message, "the server ended the session");
    EXPECT_EQ(bed.session->carrying(), 0u);
    EXPECT_EQ(bed.traffic.open_connections.Value(), 0);
  });
}

TEST(TunnelSession, StopsWithoutHarmToThoseWhoAreThere) {
  run([](Bed& bed) -> Task<> {
    co_await bed.until(Session::State::serving);
    auto user = co_await bed.server->connect("x");
    co_await bed.until([&] { return bed.session->carrying() == 1; });
    bed.session->stop();
    EXPECT_EQ(bed.session->state(), Session::State::stopping);
    co_await bed.server->until([&] { return bed.server->closed_proxies == 1; });
    co_await bed.until([&] { return !bed.upstream.empty(); });
    CO_ASSERT_OK(co_await bed.upstream.front()->write("answer"));
    EXPECT_EQ(co_await read(*user), "answer");
  });
}

}  // namespace
}  // namespace gitops::tunnel
