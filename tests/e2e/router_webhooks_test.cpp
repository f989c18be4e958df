#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "daemons/router_harness.hpp"
#include "support/status_page.hpp"
#include "support/wait.hpp"

// Git hosts send a webhook once: whatever an event source does, it gets each of them in the end.
namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string webhook(int number, std::size_t size = 2) {
  return RouterHarness::request("POST", "/webhooks/argo/github?n=" + std::to_string(number), {},
                                std::string(size, 'x'));
}

// Counts which webhooks came.
class Source {
 public:
  explicit Source(std::chrono::milliseconds takes = 0ms) : takes_(takes) {}

  RecordingUpstream::Answer answer() {
    return [this](const RecordedRequest& request, RawSocket& socket) {
      std::this_thread::sleep_for(takes_);
      {
        const std::lock_guard lock(mutex_);
        seen_.insert(request.target());
      }
      return RecordingUpstream::reply(socket, "success");
    };
  }
  [[nodiscard]] std::size_t seen() const {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  const std::chrono::milliseconds takes_;
  mutable std::mutex mutex_;
  std::set<std::string> seen_;
};

// A page of the admin port.
std::string admin(const RouterHarness& bed, const char* target) {
  return raw_call(bed.admin_port(), RouterHarness::request("GET", target, "Connection: close\r\n"))
      .body;
}

json page(const RouterHarness& bed) {
  return json::parse(admin(bed, "/webhooks"));
}

// Sends so many at once, and returns how many were answered with 200 or 202.
std::size_t send_at_once(const RouterHarness& bed, int count, std::size_t size) {
  std::atomic<std::size_t> taken = 0;
  std::vector<std::jthread> senders;
  for (int i = 0; i < count; ++i) {
    senders.emplace_back([&, i] {
      RawSocket socket(bed.port(), 60s);
      socket.send(webhook(i, size));
      const auto status = socket.read_response().status;
      EXPECT_THAT(status, testing::AnyOf(200, 202));
      taken += status == 200 || status == 202 ? 1 : 0;
    });
  }
  senders.clear();
  return taken;
}

TEST(RouterWebhooks, TheStatusHasALineForEachPart) {
  RouterHarness bed;
  const StatusPage before(admin(bed, kStatusPath));
  EXPECT_THAT(before.state("app-proxy"), testing::AnyOf("ok", "pending")) << before;
  require_until([&] { return StatusPage(admin(bed, kStatusPath)).state("app-proxy") == "ok"; }, 20s,
                "app-proxy");
  // The one test of the whole text; the others compare its entries.
  EXPECT_THAT(admin(bed, "/statusz"), testing::MatchesRegex("request-router [0-9.]+\n"
                                                            "up [0-9hms]+\n"
                                                            "ready\n"
                                                            "\n"
                                                            "connections: [0-9]+\n"
                                                            "app-proxy: reachable\n"
                                                            "webhooks kept: 0\n"));
}

TEST(RouterWebhooks, MoreThanASourceTakesAtOnceAreAllDelivered) {
  Source source(1s);
  RouterHarness bed({.events = source.answer()});
  EXPECT_EQ(send_at_once(bed, 150, 2), 150U);
  require_until([&] { return source.seen() == 150; }, 30s, "all webhooks to be delivered");
  EXPECT_EQ(page(bed)["lost"], json::array());
}

// More bodies than may be held: their senders wait for room. GITOPS_LONG=1: 500 of them, for a source that
// needs a second for each.
TEST(RouterWebhooks, MoreThanMemoryHoldsAtOnceAreAllDelivered) {
  const char* const wanted = std::getenv("GITOPS_LONG");
  const bool is_long = wanted != nullptr && std::string_view(wanted) == "1";
  const std::size_t count = is_long ? 500 : 140;
  Source source(is_long ? 1000ms : 300ms);
  RouterHarness bed(
      {.environment = {{"WEBHOOK_CONCURRENCY", is_long ? "32" : "16"}}, .events = source.answer()});
  EXPECT_EQ(send_at_once(bed, static_cast<int>(count), 1024 * 1024), count);
  require_until([&] { return source.seen() == count; }, 60s, "all webhooks to be delivered");
  EXPECT_EQ(page(bed)["lost"], json::array());
}

TEST(RouterWebhooks, WhatComesWhileTheSourceIsDownIsDeliveredWhenItIsBack) {
  RouterHarness bed;
  const auto port = bed.events().port();
  EXPECT_EQ(raw_call(bed.port(), webhook(0)).status, 200);
  bed.stop_events();
  for (int i = 1; i <= 20; ++i) {
    const auto answer = raw_call(bed.port(), webhook(i));
    EXPECT_EQ(answer.status, 202);
    EXPECT_TRUE(json::accept(answer.body));
  }
  const auto kept = page(bed);
  EXPECT_EQ(kept["kept"], 20);
  EXPECT_EQ(kept["sources"][0]["event_source"], "github");
  EXPECT_EQ(kept["sources"][0]["reachable"], false);
  Source source;
  const RecordingUpstream back("events", source.answer(), port);
  require_until([&] { return source.seen() == 20; }, 30s, "all webhooks to be delivered");
  require_until([&] { return page(bed)["kept"] == 0; }, 30s, "the store to be empty");
  const auto metrics = raw_call(bed.admin_port(), RouterHarness::request("GET", "/metrics")).body;
  EXPECT_THAT(metrics, testing::HasSubstr("gitops_router_delivered_kept_webhooks_total 20"));
  // What is delivered later is what was sent.
  EXPECT_EQ(back.requests().at(0).body, "xx");
  EXPECT_EQ(back.requests().at(0).header("X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(raw_call(bed.port(), webhook(21)).status, 200);
}

TEST(RouterWebhooks, AreTriedOnRequestAtMostOnceASecondForEachSource) {
  RouterHarness bed;
  const auto port = bed.events().port();
  EXPECT_EQ(raw_call(bed.port(), webhook(0)).status, 200);
  const auto redeliver = [&bed](const std::string& query, const std::string& more = {},
                                const char* method = "POST") {
    const auto target = "/webhooks/redeliver" + query;
    return raw_call(bed.admin_port(),
                    RouterHarness::request(method, target, "Connection: close\r\n" + more));
  };
  EXPECT_EQ(json::parse(redeliver("").body)["sources"], json::array());
  bed.stop_events();
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(raw_call(bed.port(), webhook(i)).status, 202);

  EXPECT_EQ(redeliver("", "Origin: https://page.example\r\n").status, 403);
  EXPECT_EQ(redeliver("", "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(redeliver("", {}, "GET").status, 405);
  EXPECT_EQ(json::parse(redeliver("?event_source=argo/other").body)["sources"], json::array());
  const auto first = json::parse(redeliver("?event_source=argo/github").body)["sources"];
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0]["event_source"], "github");
  EXPECT_EQ(first[0]["kept"], 3);
  EXPECT_EQ(first[0]["attempt"], "now");
  EXPECT_EQ(json::parse(redeliver("?event_source=github").body)["sources"][0]["attempt"],
            "too_soon");
  EXPECT_EQ(page(bed)["kept"], 3);

  Source source;
  const RecordingUpstream back("events", source.answer(), port);
  require_until(
      [&] {
        redeliver("");
        return source.seen() == 3;
      },
      5s, "all webhooks to be delivered");
}

TEST(RouterWebhooks, OneThatTheSourceIsTooBusyForIsDeliveredLater) {
  std::atomic<int> asked = 0;
  const auto answer = [&asked](const RecordedRequest&, RawSocket& socket) {
    if (asked++ < 2) return RecordingUpstream::reply(socket, "", "", "503 Service Unavailable");
    return RecordingUpstream::reply(socket, "success");
  };
  RouterHarness bed({.events = answer});
  RawSocket socket(bed.port());
  socket.send(webhook(1));
  const auto first = socket.read_response();
  EXPECT_EQ(first.status, 200) << "it waited for the answer";
  EXPECT_EQ(first.body, "success");
  EXPECT_EQ(asked, 3);
}

TEST(RouterWebhooks, AnswersOfTheSourceArePassedOn) {
  const auto answer = [](const RecordedRequest&, RawSocket& socket) {
    return RecordingUpstream::reply(socket, "no such endpoint", "", "404 Not Found");
  };
  RouterHarness bed({.events = answer});
  const auto refused = raw_call(bed.port(), webhook(1));
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.body, "no such endpoint");
  EXPECT_EQ(page(bed)["kept"], 0);
}

// A payload at which the source crashes must not stop the payloads of others.
TEST(RouterWebhooks, OneAtWhichTheSourceBreaksHoldsUpNoOther) {
  Source source;
  const auto answer = [good = source.answer()](const RecordedRequest& request, RawSocket& socket) {
    return !request.target().ends_with("?n=0") && good(request, socket);
  };
  RouterHarness bed({.events = answer});
  for (int i = 0; i <= 20; ++i) {
    EXPECT_THAT(raw_call(bed.port(), webhook(i)).status, testing::AnyOf(200, 202));
  }
  require_until([&] { return source.seen() == 20; }, 30s, "the others to be delivered");
  EXPECT_EQ(page(bed)["kept"], 1);
}

// The source refuses by the length, and closes without reading the body: a reset follows its answer.
TEST(RouterWebhooks, OneThatIsTooLargeForItsSourceIsRefused) {
  constexpr std::size_t kLarge = 5UL * 1024 * 1024;
  const auto too_large = [](const RecordedRequest&, RawSocket& socket) {
    RecordingUpstream::reply(socket, "too large", "Connection: close\r\n",
                             "413 Request Entity Too Large");
    return false;
  };
  RouterHarness bed({.events = too_large});
  const auto port = bed.events().port();
  bed.events().answer_early("n=");
  EXPECT_EQ(raw_call(bed.port(), webhook(1, kLarge)).status, 413);
  EXPECT_EQ(page(bed)["kept"], 0);
  bed.stop_events();
  EXPECT_EQ(raw_call(bed.port(), webhook(2, kLarge)).status, 202);
  RecordingUpstream back("events", too_large, port);
  back.answer_early("n=");
  require_until([&] { return page(bed)["kept"] == 0; }, 30s, "the refusal of the source");
  EXPECT_EQ(page(bed)["lost"][0]["reason"], "rejected");
}

// Git hosts follow no redirection either, and count it as a failure.
TEST(RouterWebhooks, OneThatIsRedirectedIsNotDelivered) {
  RouterHarness bed;
  const auto port = bed.events().port();
  bed.stop_events();
  EXPECT_EQ(raw_call(bed.port(), webhook(1)).status, 202);
  const RecordingUpstream back(
      "events",
      [](const RecordedRequest&, RawSocket& socket) {
        return RecordingUpstream::reply(socket, "", "Location: /login\r\n", "302 Found");
      },
      port);
  require_until([&] { return page(bed)["kept"] == 0; }, 30s, "the refusal of the source");
  EXPECT_EQ(page(bed)["lost"][0]["reason"], "rejected");
}

TEST(RouterWebhooks, NothingIsKeptForASourceThatNobodyKnows) {
  RouterHarness bed;
  const auto answer =
      raw_call(bed.port(), RouterHarness::request("POST", "/webhooks/argo/nobody", {}, "{}"));
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(page(bed)["kept"], 0);
}

// A port at which connections are neither made nor refused, as on a node that is down.
class SilentPort {
 public:
  SilentPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    const int listener = open_socket();
    if (::bind(listener, name, size) != 0 || ::listen(listener, 0) != 0 ||
        ::getsockname(listener, name, &size) != 0) {
      throw std::runtime_error("no port to listen on");
    }
    port_ = ::ntohs(address.sin_port);
    // Fills the queue of the listener, which accepts none.
    for (int i = 0; i < 4; ++i) ::connect(open_socket(), name, size);
  }
  ~SilentPort() {
    for (const int descriptor : sockets_) ::close(descriptor);
  }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int open_socket() {
    return sockets_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }

  std::vector<int> sockets_;
  std::uint16_t port_ = 0;
};

TEST(RouterWebhooks, OneForASourceThatHasNotBeenReachedYetIsKept) {
  const SilentPort silent;
  RouterHarness bed({.environment = {{"WEBHOOK_PORT", std::to_string(silent.port())},
                                     {"CONNECT_TIMEOUT", "300ms"}}});
  EXPECT_EQ(raw_call(bed.port(), webhook(1)).status, 202);
  EXPECT_EQ(page(bed)["kept"], 1);
}

TEST(RouterWebhooks, NothingIsKeptBeforeItsSignatureIsChecked) {
  const TempDir folder;
  write_file(folder / "secret", "s3cret");
  RouterHarness bed({.environment = {{"WEBHOOK_SIGNATURES",
                                      "argo/github=github:" + (folder / "secret").string()}}});
  bed.stop_events();
  const auto send = [&bed](const std::string& key) {
    return raw_call(bed.port(),
                    RouterHarness::request(
                        "POST", "/webhooks/argo/github",
                        "X-Hub-Signature-256: sha256=" + hmac_sha256(key, "{}") + "\r\n", "{}"))
        .status;
  };
  EXPECT_EQ(send("s3cret"), 202);
  EXPECT_EQ(send("forged"), 401);
  EXPECT_EQ(page(bed)["kept"], 1);
}

TEST(RouterWebhooks, ThoseInTheJournalSurviveTheProcess) {
  const TempDir folder;
  const Environment environment{{"WEBHOOK_JOURNAL", (folder / "journal").string()}};
  std::uint16_t port = 0;
  {
    RouterHarness bed({.environment = environment});
    port = bed.events().port();
    bed.stop_events();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(raw_call(bed.port(), webhook(i)).status, 202);
    bed.process().kill();
  }
  Source source;
  const RecordingUpstream back("events", source.answer(), port);
  auto next = environment;
  next["WEBHOOK_PORT"] = std::to_string(port);
  RouterHarness bed({.environment = next});
  require_until([&] { return source.seen() == 10; }, 30s, "all webhooks to be delivered");
  require_until([&] { return page(bed)["kept"] == 0; }, 30s, "the store to be empty");
}

// An event source that fails as it is told.
class FailingSource {
 public:
  FailingSource() { start(); }
  void start() {
    upstream_.emplace(
        "events",
        [this](const RecordedRequest& request, RawSocket& socket) {
          return answer(request, socket);
        },
        port_);
    port_ = upstream_->port();
  }
  void stop() { upstream_.reset(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Whether these webhooks, and maybe others, were taken.
  [[nodiscard]] bool has(const std::set<int>& numbers) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::includes(taken_, numbers);
  }

  std::atomic<bool> is_slow = false;
  std::atomic<bool> is_busy = false;
  std::atomic<bool> breaks = false;

 private:
  bool answer(const RecordedRequest& request, RawSocket& socket) {
    if (is_slow) std::this_thread::sleep_for(200ms);
    // Both at once take turns.
    if (breaks && (!is_busy || turn_++ % 2 == 0)) return false;
    if (is_busy) return RecordingUpstream::reply(socket, "", "", "503 Service Unavailable");
    const auto target = request.target();
    {
      const std::lock_guard lock(mutex_);
      taken_.insert(std::stoi(target.substr(target.rfind('=') + 1)));
    }
    return RecordingUpstream::reply(socket, "success");
  }

  std::atomic<unsigned> turn_ = 0;
  mutable std::mutex mutex_;
  std::set<int> taken_;
  std::uint16_t port_ = 0;
  std::optional<RecordingUpstream> upstream_;  // its threads use the others
};

enum class Fault { down, breaks, busy, slow, routes, killed, drained };
constexpr std::array<std::string_view, 7> kFaults{"down",   "breaks", "busy",   "slow",
                                                  "routes", "killed", "drained"};

// A router with a journal, its event source, and senders that send each webhook once.
class RouterUnderFaults {
 public:
  RouterUnderFaults() {
    mend_routes();
    start();
  }

  // Has webhooks come while both faults last, and waits until all that were accepted are delivered.
  void play(Fault one, Fault other) {
    faults_ = {one, other};
    begin();
    send(6);
    if (has(Fault::killed) || has(Fault::drained)) {
      replace_process();
      send(4);
    }
    end();
    require_until(
        [&] {
          (void)raw_call(bed_->admin_port(), RouterHarness::request("POST", "/webhooks/redeliver",
                                                                    "Connection: close\r\n"));
          const std::lock_guard lock(mutex_);
          return done_ == sent_ && source_.has(accepted_);
        },
        40s, "what was accepted to be delivered");
    senders_.clear();
    EXPECT_THAT(refused_, testing::IsEmpty());
    EXPECT_EQ(page(*bed_)["lost"], json::array());
  }
  [[nodiscard]] std::size_t accepted() const { return accepted_.size(); }

 private:
  [[nodiscard]] bool has(Fault fault) const { return faults_.contains(fault); }
  void mend_routes() { write_file(folder_ / "routes.yaml", "webhook-namespaces: [argo]\n"); }

  void start() {
    bed_.emplace(
        RouterHarness::Options{.environment = {{"WEBHOOK_JOURNAL", (folder_ / "journal").string()},
                                               {"WEBHOOK_PORT", std::to_string(source_.port())},
                                               {"ROUTES_FILE", (folder_ / "routes.yaml").string()},
                                               {"DRAIN_TIMEOUT", "1s"}}});
  }

  void begin() {
    source_.is_slow = has(Fault::slow);
    source_.is_busy = has(Fault::busy);
    source_.breaks = has(Fault::breaks);
    if (has(Fault::down)) source_.stop();
    if (!has(Fault::routes)) return;
    write_file(folder_ / "routes.yaml", "webhook-port: 99999\n");
    require_until([&] { return bed_->log().contains("the routes in force stay"); }, 20s,
                  "the mistake in the routes to be told");
  }
  void end() {
    source_.is_slow = source_.is_busy = source_.breaks = false;
    if (has(Fault::down)) source_.start();
    mend_routes();
  }

  // Senders that wait for an answer of the process that ends get none: theirs are not accepted.
  void replace_process() {
    if (has(Fault::drained)) bed_->process().signal(SIGTERM);
    if (has(Fault::killed)) {
      bed_->process().kill();
    } else {
      EXPECT_EQ(bed_->process().wait(30s), 0) << bed_->log();
    }
    senders_.clear();
    refused_.clear();
    mend_routes();  // no process starts with mistakes in it
    bed_.reset();
    start();
  }

  // Returns when each webhook was answered or is kept.
  void send(int count) {
    const auto kept = [this] { return page(*bed_)["kept"].get<int>(); };
    const int before = kept();
    const int wanted = sent_ + count;
    while (sent_ < wanted) {
      senders_.emplace_back([this, number = ++sent_, port = bed_->port()] { ask(number, port); });
    }
    const auto answered = [&] {
      const std::lock_guard lock(mutex_);
      return done_ == wanted;
    };
    require_until([&] { return answered() || kept() >= before + count; }, 30s,
                  "each webhook to be answered or kept");
  }
  void ask(int number, std::uint16_t port) {
    int status = 0;
    try {
      RawSocket socket(port, 30s);
      socket.send(webhook(number));
      status = socket.read_response().status;
    } catch (const std::exception&) {
      status = 0;  // nobody listens
    }
    const std::lock_guard lock(mutex_);
    ++done_;
    if (status == 200 || status == 202) {
      accepted_.insert(number);
    } else {
      refused_.push_back(status);
    }
  }

  TempDir folder_;
  FailingSource source_;
  std::optional<RouterHarness> bed_;
  std::set<Fault> faults_;
  int sent_ = 0;
  std::mutex mutex_;
  int done_ = 0;
  std::set<int> accepted_;
  std::vector<int> refused_;  // statuses
  std::vector<std::jthread> senders_;
};

// Each pair of faults at once: of the source, of the routes and of the router itself. GITOPS_LONG=1:
// all pairs, otherwise a third of them.
TEST(RouterWebhooks, NoneIsLostThroughPairsOfFaults) {
  const char* const wanted = std::getenv("GITOPS_LONG");
  const bool is_long = wanted != nullptr && std::string_view(wanted) == "1";
  RouterUnderFaults router;
  std::size_t pair = 0;
  for (std::size_t one = 0; one < kFaults.size(); ++one) {
    for (std::size_t other = one + 1; other < kFaults.size(); ++other, ++pair) {
      if (!is_long && pair % 3 != 1) continue;
      SCOPED_TRACE(std::string(kFaults.at(one)) + " and " + std::string(kFaults.at(other)));
      router.play(static_cast<Fault>(one), static_cast<Fault>(other));
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(router.accepted(), is_long ? 100U : 30U);
}

}  // namespace
}  // namespace gitops::test
