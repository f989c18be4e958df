// Logs and events of pods by the running app-proxy: as subscriptions, as server-sent events and as an
// archive. An API server, argocd-server and argo-server are doubles; the two last stream lines.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <list>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/core/race.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/gzip.hpp"
#include "common/http/sse.hpp"
#include "common/http/websocket.hpp"
#include "e2e/app_proxy_logs_harness.hpp"
#include "e2e/git_harness.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;
using Harness = AppProxyHarness;

constexpr const char* kApplicationLogs =
    R"(subscription{applicationLogs(applicationName:"shop",podName:"ui-1",container:"main",tailLines:50,)"
    R"(options:{follow:true,filter:"!noise",sinceSeconds:60}){data{podName timestamp content} error done}})";

TEST(AppProxyLogs, OfApplicationsAndWorkflowsAsTheRulesAllow) {
  in_log_harness([](LogHarness& w) -> Task<> {
    w.allow({"VIEW_POD_LOGS", "ACCESS_LOGS"});
    co_await w.start();
    // The lines are older than sinceSeconds.
    EXPECT_THAT(told(co_await w.subscribe(Harness::kBob, kApplicationLogs)), ElementsAre("done"));
    const auto& asked = w.argo.asked;
    CO_ASSERT_EQ(asked.size(), 1U);
    for (const char* parameter : {"podName=ui-1", "container=main", "tailLines=50", "follow=true",
                                  "filter=%21noise", "sinceSeconds=60", "namespace=web"}) {
      EXPECT_THAT(asked[0], HasSubstr(parameter));
    }
    EXPECT_THAT(told(co_await w.subscribe(Harness::kBob,
                                          R"(subscription{applicationLogs(applicationName:"shop"))"
                                          R"({data{podName content} error done}})")),
                ElementsAre("ui-1: one", "ui-1: two", "ui-1: three", "done"));
    EXPECT_THAT(told(co_await w.subscribe(
                    Harness::kBob, R"(subscription{workflowLogs(namespace:"web",workflowName:"w",)"
                                   R"(options:{filter:"t"}){data{podName content} error done}})")),
                ElementsAre("ui-1: one", "ui-1: two", "ui-1: three", "done"));
    EXPECT_THAT(w.argo.asked.back(), HasSubstr("grep=t"));
  });
}

TEST(AppProxyLogs, NobodyReadsWhatTheRulesDoNotAllow) {
  in_log_harness([](LogHarness& w) -> Task<> {
    w.allow({"VIEW"});
    co_await w.start();
    const char* const queries[] = {
        R"(subscription{applicationLogs(applicationName:"shop"){done}})",
        R"(subscription{workflowLogs(namespace:"web",workflowName:"w"){done}})",
        R"(subscription{podEvents(namespace:"web",podName:"other",applicationName:"shop"){done}})",
        R"(subscription{podEvents(namespace:"web",podName:"other",workflowName:"w"){done}})",
    };
    for (const char* query : queries) {
      EXPECT_THAT(told(co_await w.subscribe(Harness::kBob, query)), ElementsAre("Forbidden"))
          << query;
    }
    EXPECT_THAT(
        told(co_await w.subscribe(
            Harness::kBob, R"(subscription{componentLogs(componentName:"cap-app-proxy"){done}})")),
        ElementsAre("only an administrator of the account may do this"));
    for (const char* query :
         {"applicationName=shop", "workflowName=w&namespace=web", "componentName=cap-app-proxy"}) {
      const auto answer = co_await w.base.base.send(
          {.method = "GET",
           .target = std::string("/api/applications/logs?") + query,
           .headers = {{"Authorization", Harness::kBob}, {"Accept", "text/event-stream"}}});
      EXPECT_EQ(answer.status, 403) << query << answer.body;
    }
    EXPECT_THAT(w.argo.asked, IsEmpty());
    // The archive: nobody, a user, somebody of another account.
    const auto archive = [&](http::Headers headers) -> Task<int> {
      co_return (co_await w.base.base.send({.method = "GET",
                                            .target = "/app-proxy/api/applications/logs",
                                            .headers = std::move(headers)}))
          .status;
    };
    EXPECT_EQ(co_await archive({}), 401);
    EXPECT_EQ(co_await archive(Harness::as(Harness::kEve)), 401);
    EXPECT_EQ(co_await archive(Harness::as(Harness::kBob)), 403);
  });
}

TEST(AppProxyLogs, OfComponentsAsASubscriptionAsEventsAndAsAnArchive) {
  in_log_harness([](LogHarness& w) -> Task<> {
    co_await w.start({{"LOGS_WITHOUT_LOGIN", "true"}});
    EXPECT_THAT(told(co_await w.subscribe(
                    Harness::kAnn,
                    R"(subscription{componentLogs(componentName:"cap-app-proxy",tailLines:1))"
                    R"({data{podName componentName containerName timestamp content} done}})")),
                ElementsAre("cap-app-proxy-6d4-x2x7k: a line of a pod", "done"));
    EXPECT_THAT(told(co_await w.subscribe(
                    Harness::kAnn, R"(subscription{componentLogs(componentName:"none"){done}})")),
                ElementsAre(HasSubstr("no such component")));

    auto events = co_await w.open_events(Harness::kAnn, "componentName=event-reporter&follow=true");
    CO_ASSERT_TRUE(events.has_value());
    http::ServerSentEventParser parser(64 * 1024);
    std::vector<http::ServerSentEvent> heard;
    const auto hear = [&]() -> Task<> {
      auto piece = co_await events->read_some();
      CO_ASSERT_OK(piece);
      auto parsed = parser.feed(*piece);
      CO_ASSERT_OK(parsed);
      for (auto& event : *parsed) heard.push_back(std::move(event));
    };
    while (heard.size() < 2) co_await hear();
    EXPECT_EQ(heard[1].event, "log");
    EXPECT_EQ(Json::parse(heard[1].data), (Json{{"podName", "event-reporter-0"},
                                                {"containerName", "main"},
                                                {"timestamp", "2026-03-04T09:15:27Z"},
                                                {"content", "a line of a pod"}}));
    w.base.cluster.append_pod_log("2026-03-04T09:15:28Z a later line\n");
    while (heard.size() < 3) co_await hear();
    EXPECT_THAT(heard[2].data, HasSubstr("a later line"));
    events.reset();

    // As the command line asks: without a credential.
    const auto archive =
        co_await w.base.base.send({.method = "GET", .target = "/app-proxy/api/applications/logs"});
    EXPECT_EQ(archive.status, 200);
    EXPECT_EQ(archive.headers.find("Content-Disposition"), "attachment; filename=\"prod.tar.gz\"");
    const auto tar = http::gzip_decompress(archive.body, 10'000'000);
    CO_ASSERT_OK(tar);
    EXPECT_EQ(tar->size() % 512, 0U);
    EXPECT_THAT(*tar, testing::StartsWith("cap-app-proxy.log"));
    EXPECT_THAT(*tar, HasSubstr("==> cap-app-proxy-6d4-x2x7k/main <=="));
    EXPECT_THAT(*tar, HasSubstr("==> event-reporter-0/main <=="));
    EXPECT_THAT(*tar, HasSubstr("a later line"));
  });
}

TEST(AppProxyLogs, EventsOfAPod) {
  in_log_harness([](LogHarness& w) -> Task<> {
    w.allow({"VIEW"});
    co_await w.start();
    const auto put = [&](const std::string& name, const std::string& message) {
      w.base.cluster.put({"", "v1", "events", "Event"},
                         {{"apiVersion", "v1"},
                          {"kind", "Event"},
                          {"metadata", {{"name", name}, {"namespace", "web"}}},
                          {"involvedObject", {{"kind", "Pod"}, {"name", "w-1"}}},
                          {"reason", "Scheduled"},
                          {"type", "Normal"},
                          {"lastTimestamp", "2026-03-04T09:15:27Z"},
                          {"message", message}});
    };
    put("a", "first");
    const auto all = co_await w.subscribe(
        Harness::kBob,
        R"(subscription{podEvents(namespace:"web",podName:"w-1",workflowName:"w"))"
        R"({data{podName timestamp message reason type} error done}})",
        [&](const std::vector<Json>& answers) {
          if (answers.size() == 1) put("b", "second");
          return answers.size() == 2;
        });
    EXPECT_THAT(told(all), ElementsAre("w-1: first", "w-1: second"));
    EXPECT_EQ(all[0]["data"], (Json{{"podName", "w-1"},
                                    {"timestamp", "2026-03-04T09:15:27Z"},
                                    {"message", "first"},
                                    {"reason", "Scheduled"},
                                    {"type", "Normal"}}));
  });
}

// A reader of a log with a small buffer, on a network with small segments: the kernel holds little for it.
struct SlowReader {
  explicit SlowReader(const Executor& executor) : socket(executor) {}

  Task<Result<void>> open(std::uint16_t port, std::string query) {
    boost::system::error_code failed;
    socket.open(asio::ip::tcp::v4());
    socket.set_option(asio::socket_base::receive_buffer_size(4096));
    const int segment = 1448;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
    co_await socket.async_connect({asio::ip::address_v4::loopback(), port},
                                  asio::redirect_error(use_task, failed));
    const std::string request = "GET /app-proxy/api/applications/logs?" + query +
                                " HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n"
                                "Authorization: " +
                                Harness::kAnn + "\r\n\r\n";
    if (!failed) {
      co_await asio::async_write(socket, asio::buffer(request),
                                 asio::redirect_error(use_task, failed));
    }
    std::string head;
    if (!failed) {
      co_await asio::async_read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n",
                                      asio::redirect_error(use_task, failed));
    }
    if (failed || !head.starts_with("HTTP/1.1 200 ")) {
      co_return fail(ErrorCode::unavailable, query + ": " + failed.message() + head);
    }
    co_return Result<void>();
  }
  Task<Result<void>> read_piece() {
    std::array<char, kPiece> piece;
    boost::system::error_code failed;
    co_await asio::async_read(socket, asio::buffer(piece), asio::redirect_error(use_task, failed));
    if (failed) co_return fail(ErrorCode::unavailable, "a log was cut off: " + failed.message());
    co_return Result<void>();
  }

  static constexpr std::size_t kPiece = 16 * 1024;
  asio::basic_stream_socket<asio::ip::tcp, Executor> socket;
};

// Gives the connections that this process will accept at the port a small buffer, so that the kernel holds little of what
// a server has written.
void keep_send_buffers_small(std::uint16_t port) {
  int changed = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof(listens);
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    const bool is_it =
        ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
        ntohs(address.sin_port) == port;
    if (!is_it) continue;
    const int bytes = 64 * 1024;
    EXPECT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    ++changed;
  }
  EXPECT_EQ(changed, 1);
}

// Readers that take a piece now and then hold up their servers, and are not cut off: the servers write what is read and no
// more, memory stays flat, and others are served. GITOPS_LONG: 1,000 readers, for much longer than the 60 s after which who
// reads nothing is cut off.
TEST(AppProxyLogs, SlowReadersHoldUpTheirServersAndNobodyElse) {
  in_log_harness([](LogHarness& w) -> Task<> {
    // Freed memory must not count.
    co_await w.start({{"ASAN_OPTIONS", "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}});
    auto& daemon = *w.base.base.daemon;
    const auto executor = co_await asio::this_coro::executor;
    const bool is_long = std::getenv("GITOPS_LONG") != nullptr;
    const std::size_t count = is_long ? 1'000 : 20;
    keep_send_buffers_small(w.argo.server.port());

    std::list<SlowReader> slow;
    std::size_t taken = 0;
    const auto read_each = [&]() -> Task<Result<void>> {
      for (auto& reader : slow) {
        if (auto read = co_await reader.read_piece(); !read) co_return read;
        taken += SlowReader::kPiece;
      }
      co_return Result<void>();
    };
    const auto written = [&] {
      std::size_t sum = 0;
      for (const auto& [query, bytes] : w.argo.written) sum += bytes;
      return sum;
    };
    const auto until_held_up = [&]() -> Task<> {
      std::size_t before = 0;
      const auto time_limit = deadline_after(50s);
      do {
        before = written();
        co_await sleep_for(500ms);
      } while (written() != before && Clock::now() < time_limit);
      EXPECT_EQ(written(), before);
    };
    const std::size_t idle = daemon.memory();
    while (slow.size() < count) {
      const auto query = "applicationName=shop&tailLines=0&podName=p" + std::to_string(slow.size());
      auto& reader = slow.emplace_back(executor);
      const auto opened =
          co_await with_timeout(deadline_after(60s), reader.open(daemon.port(), query));
      CO_ASSERT_OK(opened);
      if (slow.size() % 100 != 0) continue;
      // The first ones must not wait for all the others.
      const auto read = co_await with_timeout(deadline_after(60s), read_each());
      CO_ASSERT_OK(read);
    }
    co_await until_held_up();
    EXPECT_EQ(w.argo.written.size(), count);
    const std::size_t held = daemon.memory();

    Clock::duration slowest{};
    int rounds = 0;
    const auto begin = Clock::now();
    do {
      const auto read = co_await with_timeout(deadline_after(60s), read_each());
      CO_ASSERT_OK(read);
      const auto asked = Clock::now();
      EXPECT_EQ((co_await w.base.base.ask("{versionInfo{version}}")).status, 200);
      slowest = std::max(slowest, Clock::now() - asked);
      co_await until_held_up();
      ++rounds;
    } while (rounds < 2 || (is_long && Clock::now() - begin < 150s));
    const auto logs_read = [&] { return daemon.status().count("logs being read", "count"); };
    EXPECT_EQ(logs_read(), static_cast<std::int64_t>(count));
    EXPECT_LT(slowest, 10s);
    // Of each stream, what lies on its way.
    EXPECT_LT(written(), taken + count * 1024 * 1024);

    // One that reads: 20 MB pass, and the others cost nothing more.
    const std::size_t before = written();
    auto fast =
        co_await w.open_events(Harness::kAnn, "applicationName=shop&tailLines=0&podName=fast");
    CO_ASSERT_TRUE(fast.has_value());
    std::size_t read = 0;
    while (read < 20'000'000) {
      fast->set_deadline(deadline_after(60s));
      auto piece = co_await fast->read_some();
      CO_ASSERT_OK(piece);
      CO_ASSERT_TRUE(!piece->empty());
      read += piece->size();
    }
    const std::size_t after = daemon.memory();
    std::cout << count << " slow readers, " << rounds << " rounds: " << idle
              << " KiB without them, " << held
              << " KiB with them, after the rounds and 20 MB to another one " << after
              << " KiB; their servers wrote " << before << " bytes, " << taken
              << " were read; the slowest other answer took "
              << std::chrono::duration_cast<std::chrono::milliseconds>(slowest).count() << " ms\n";
    // A stream has one piece under way.
    EXPECT_LT(after, held + 8 * 1024 + count * SlowReader::kPiece / 1024);
    EXPECT_EQ(logs_read(), static_cast<std::int64_t>(count + 1));
    fast.reset();
    slow.clear();
    const auto deadline = deadline_after(30s);
    while (logs_read() != 0 && Clock::now() < deadline) {
      co_await sleep_for(50ms);
    }
    EXPECT_EQ(logs_read(), 0);
  });
}

}  // namespace
}  // namespace gitops::test
