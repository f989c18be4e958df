// Several real control planes on one PostgreSQL: live streams, revocations, and what faults do to them. GITOPS_LONG=1 plays
// more rounds of each fault.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "control-plane/replicas_fixture.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;
using testing::Contains;
using testing::Not;

TEST(Replicas, AnEventAtOneArrivesOnStreamsOfAllOthers) {
  Replicas replicas(4);
  std::vector<std::unique_ptr<LiveStream>> streams;
  for (std::size_t i = 0; i < 4; ++i) {
    streams.push_back(std::make_unique<LiveStream>(replicas.at(i), replicas.header()));
    streams.back()->wait_for("reset");
  }
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(replicas.post(i, "app-" + std::to_string(i)), 200);
  }
  for (const auto& stream : streams) {
    for (std::size_t i = 0; i < 4; ++i) stream->wait_for_row("app-" + std::to_string(i));
  }
}

TEST(Replicas, ARowIsThatOfTheQuery) {
  Replicas replicas(2);
  const LiveStream stream(replicas.at(1), replicas.header(), "index,runtimes,app:uid-shop");
  stream.wait_for("reset");
  ASSERT_EQ(replicas.post(0, "shop", "Degraded"), 200);
  stream.wait_for_row("shop");
  const auto row = stream.rows().at("shop");
  const auto reply = replicas.at(0).graphql(
      replicas.key,
      "{applications{edges{node{metadata{name namespace runtime uid kind} healthStatus syncStatus "
      "revision updatedAt syncPolicy destination{server} status{commitAuthor commitMessage}}}}}");
  const auto json = Json::parse(reply.body);
  const auto& node = json["data"]["applications"]["edges"][0]["node"];
  for (const auto* member : {"name", "namespace", "runtime", "uid", "kind"}) {
    EXPECT_EQ(row[member], node["metadata"][member]) << member;
  }
  EXPECT_EQ(row["health"], "DEGRADED");
  EXPECT_EQ(row["health"], node["healthStatus"]);
  EXPECT_EQ(row["sync"], "SYNCED");
  EXPECT_EQ(row["sync"], node["syncStatus"]);
  EXPECT_EQ(row["revision"], node["revision"]);
  EXPECT_EQ(row["changedAt"], node["updatedAt"]);
  EXPECT_EQ(row["autoSync"], node["syncPolicy"] == "Automated");
  EXPECT_EQ(row["cluster"], node["destination"]["server"]);
  EXPECT_EQ(row["author"], node["status"]["commitAuthor"]);
  EXPECT_EQ(row["message"], node["status"]["commitMessage"]);
  EXPECT_EQ(row["project"], "shop");
  EXPECT_TRUE(row["phase"].is_null());
  EXPECT_TRUE(row["seenAt"].is_string());
  std::set<std::string> topics;
  for (const auto& event : stream.events()) {
    for (const auto& one : event.data.value("rows", Json::array())) topics.insert(one["topic"]);
  }
  EXPECT_THAT(topics, Contains("index"));
  EXPECT_THAT(topics, Contains("app:uid-shop"));
  stream.wait_for_row("prod");
  EXPECT_EQ(stream.rows().at("prod")["topic"], "runtimes");
}

TEST(Replicas, AStreamGoesOnAtAnotherReplica) {
  Replicas replicas(2);
  // The feed of the other replica may be a little behind the stream of the first one. Then rows come twice.
  std::string last_id;
  {
    const LiveStream stream(replicas.at(0), replicas.header());
    stream.wait_for("reset");
    ASSERT_EQ(replicas.post(0, "before"), 200);
    stream.wait_for_row("before");
    last_id = stream.events().back().id;
  }
  ASSERT_EQ(replicas.post(1, "between"), 200);
  const LiveStream next(replicas.at(1), replicas.header(), "index", last_id);
  require_until([&] { return !next.types().empty(); }, seconds(30), "an event");
  ASSERT_THAT(next.types(), Not(Contains("reset"))) << "after " << last_id;
  next.wait_for_row("between");
  const LiveStream late(replicas.at(1), replicas.header(), "index", "unknown:7");
  late.wait_for("reset");
}

TEST(Replicas, AStreamNeedsACredential) {
  Replicas replicas(1);
  const auto get = [&](const std::vector<std::string>& headers, const std::string& topics) {
    return http_call({.url = replicas.at(0).url() + "/console/api/v1/stream?topics=" + topics,
                      .headers = headers})
        .status;
  };
  EXPECT_EQ(get({}, "index"), 401);
  EXPECT_EQ(get({"Authorization: " + replicas.token}, "index"), 403);
  EXPECT_EQ(get({replicas.header()}, "everything"), 400);
}

// Returns the header with the cookie of a new session.
std::string log_in(const ControlPlaneProcess& program, const std::string& name,
                   const std::string& password) {
  const auto reply = run_or_throw({"curl", "-si", "-H", "Content-Type: application/json", "-d",
                                   Json{{"name", name}, {"password", password}}.dump(),
                                   program.url() + "/console/api/v1/login"});
  const auto at = reply.find("session=");
  if (at == std::string::npos) throw std::runtime_error(reply);
  return "Cookie: " + reply.substr(at, reply.find(';', at) - at);
}

// What is revoked at one replica counts at the others by the feed; their caches would keep it for 30 s.
constexpr auto kRevoked = seconds(5);

struct Revocations : testing::Test {
  Revocations() {
    write_file(folder / "password", "bob's password");
    replicas.at(0).add_user("bob", "acme", {"--password-file=" + (folder / "password").string()});
  }
  void expect_end(const LiveStream& stream) {
    require_until([&] { return stream.count("end") > 0; }, kRevoked, "the end of a stream");
    EXPECT_EQ(stream.events().back().data["reason"], "signed_out");
  }
  TempDir folder;
  Replicas replicas{2};
};

TEST_F(Revocations, ASessionThatEndsAtOneEndsItsStreamsAtAll) {
  const auto cookie = log_in(replicas.at(0), "bob", "bob's password");
  const auto other = log_in(replicas.at(0), "bob", "bob's password");
  const LiveStream here(replicas.at(0), cookie);
  const LiveStream there(replicas.at(1), cookie);
  const LiveStream stays(replicas.at(1), other);
  for (const auto* stream : {&here, &there, &stays}) stream->wait_for("reset");
  EXPECT_EQ(http_call({.method = "POST",
                       .url = replicas.at(0).url() + "/console/api/v1/logout",
                       .headers = {cookie}})
                .status,
            200);
  expect_end(here);
  expect_end(there);
  ASSERT_EQ(replicas.post(0, "after"), 200);
  stays.wait_for_row("after");
  EXPECT_FALSE(there.rows().contains("after"));
}

TEST_F(Revocations, AKeyAndAUserEndTheirStreams) {
  const auto key = replicas.at(0).create_key("bob", "acme");
  const auto second = replicas.at(0).create_key("bob", "acme");
  const LiveStream by_key(replicas.at(1), "Authorization: " + key);
  const LiveStream by_second(replicas.at(1), "Authorization: " + second);
  by_key.wait_for("reset");
  by_second.wait_for("reset");
  EXPECT_EQ(http_call({.method = "DELETE",
                       .url = replicas.at(0).url() + "/api/auth/key/" + key.substr(0, 24),
                       .headers = {"Authorization: " + second}})
                .status,
            200);
  expect_end(by_key);
  EXPECT_EQ(by_second.count("end"), 0U);
  replicas.at(0).command({"user", "disable", "--name=bob"});
  expect_end(by_second);
}

TEST_F(Revocations, ARuleAtOneHidesRowsAtAll) {
  const auto bob = replicas.at(0).create_key("bob", "acme");
  const LiveStream stream(replicas.at(1), "Authorization: " + bob);
  stream.wait_for("reset");
  ASSERT_EQ(replicas.post(0, "seen"), 200);
  stream.wait_for_row("seen");
  const auto teams = http_call(
      {.url = replicas.at(0).url() + "/api/team", .headers = {"Authorization: " + replicas.key}});
  const auto created = replicas.at(0).graphql(
      replicas.key,
      "mutation($teams: [String!]!){createAbacRule(createAbacRuleInput: {entityType: "
      "gitopsApplications, teams: $teams, tags: [], actions: [\"VIEW\"], attributes: [{name: "
      "RUNTIME, value: \"dev\"}]}){id}}",
      Json{{"teams", {Json::parse(teams.body).at(0).at("_id")}}}.dump());
  const auto rule = Json::parse(created.body, nullptr, false);
  ASSERT_TRUE(rule.contains("data") && !rule.contains("errors")) << created.body;
  require_until([&] { return stream.count("reset") == 2; }, kRevoked, "a reset for the rule");
  const LiveStream admin(replicas.at(1), replicas.header());
  admin.wait_for("reset");
  ASSERT_EQ(replicas.post(0, "hidden"), 200);
  admin.wait_for_row("hidden");
  EXPECT_EQ(replicas.at(0)
                .graphql(replicas.key, "mutation($id: ID!){removeAbacRule(id: $id){id}}",
                         Json{{"id", rule["data"]["createAbacRule"]["id"]}}.dump())
                .status,
            200);
  require_until([&] { return stream.count("reset") == 3; }, kRevoked, "a reset without the rule");
  EXPECT_FALSE(stream.rows().contains("hidden"));
  ASSERT_EQ(replicas.post(0, "shown"), 200);
  stream.wait_for_row("shown");
}

TEST(ReplicaFaults, AListenerThatIsKilledLosesNothing) {
  auto& server = PostgresServer::shared();
  const auto database = server.new_database();
  Replicas replicas(2, database);
  const LiveStream stream(replicas.at(1), replicas.header());
  stream.wait_for("reset");
  for (int i = 0; i < 5; ++i) {
    server.query(database,
                 "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                 "application_name = 'control-plane-live' AND datname = current_database()");
    ASSERT_EQ(replicas.post(0, "app-" + std::to_string(i)), 200);
  }
  for (int i = 0; i < 5; ++i) stream.wait_for_row("app-" + std::to_string(i));
  EXPECT_EQ(stream.count("reset"), 1U);
}

TEST(ReplicaFaults, AnOutageOfPostgresIsToldAndLosesNothing) {
  PostgresServer server;
  Replicas replicas(2, server.new_database());
  const LiveStream stream(replicas.at(1), replicas.header());
  stream.wait_for("reset");
  ASSERT_EQ(replicas.post(0, "before"), 200);
  stream.wait_for_row("before");
  server.crash();
  stream.wait_for("stale");
  server.start();
  require_until([&] { return replicas.post(0, "after") == 200; }, seconds(60),
                "an event after the outage");
  stream.wait_for("fresh");
  stream.wait_for_row("after");
  EXPECT_EQ(stream.count("reset"), 1U) << "nothing was missed";
}

TEST(ReplicaFaults, AReaderThatStopsHarmsNoOther) {
  Replicas replicas(1);
  LiveStream stopped(replicas.at(0), replicas.header());
  const LiveStream other(replicas.at(0), replicas.header());
  stopped.wait_for("reset");
  other.wait_for("reset");
  stopped.process().signal(SIGSTOP);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(replicas.post(0, "app-" + std::to_string(i)), 200);
  other.wait_for_row("app-49");
  EXPECT_FALSE(stopped.rows().contains("app-49"));
  stopped.process().signal(SIGCONT);
  for (int i = 0; i < 50; ++i) stopped.wait_for_row("app-" + std::to_string(i));
}

int rounds_of(int many) {
  const auto* wish = std::getenv("GITOPS_LONG");
  return wish != nullptr && std::string(wish) == "1" ? many : 2;
}

// Those whose names contain `part`, at most 1,000.
std::set<std::string> stored_applications(const ControlPlaneProcess& program,
                                          const std::string& key, const std::string& part = "") {
  const auto reply = program.graphql(key,
                                     "query($part: String!){applications(filters: "
                                     "{applicationName: $part}, pagination: {first: 1000})"
                                     "{edges{node{metadata{name}}}}}",
                                     Json{{"part", part}}.dump());
  std::set<std::string> names;
  for (const auto& edge : Json::parse(reply.body)["data"]["applications"]["edges"]) {
    names.insert(edge["node"]["metadata"]["name"]);
  }
  return names;
}

// Its disk hangs: connections stay open, and nothing is answered.
TEST(ReplicaFaults, APostgresThatStandsStillStopsNoOtherAnswer) {
  PostgresServer server;
  Replicas replicas(1, server.new_database());
  ASSERT_EQ(replicas.post(0, "before"), 200);
  server.stand_still();
  for (int i = 0; i < 6; ++i) {
    const auto reply =
        replicas.at(0).graphql(replicas.key, "{applications{edges{node{metadata{name}}}}}");
    EXPECT_NE(reply.status, 0) << "an answer of the program, within the time of the client";
    EXPECT_EQ(reply.body.find("\"edges\""), std::string::npos) << reply.body;
    EXPECT_EQ(replicas.at(0).admin("/healthz").status, 200);
  }
  server.go_on();
  require_until([&] { return replicas.post(0, "after") == 200; }, seconds(60),
                "an event after the standstill");
  EXPECT_THAT(stored_applications(replicas.at(0), replicas.key),
              testing::IsSupersetOf({"before", "after"}));
}

// The address names both servers. The old primary is lost with what it alone had.
TEST(ReplicaFaults, AFailoverToASynchronousStandbyLosesNothingThatWasAcknowledged) {
  std::array<PostgresServer, 2> servers;
  auto dsn = servers[0].new_database();
  dsn.replace(dsn.find("host="), std::string::npos,
              "host=" + servers[1].folder().string() + "," + servers[0].folder().string());
  servers[1].follow(servers[0]);
  Replicas replicas(2, dsn);
  std::map<std::string, std::set<std::string>> acknowledged;  // by round
  for (int round = 0; round < rounds_of(20); ++round) {
    auto& primary = servers[static_cast<std::size_t>(round % 2)];
    auto& standby = servers[static_cast<std::size_t>((round + 1) % 2)];
    const auto part = "app-" + std::to_string(round) + "-";
    auto& answered = acknowledged[part];
    std::atomic<std::size_t> count = 0;
    std::atomic<bool> ends = false;
    // Events arrive all the time. A runtime repeats an event until it is acknowledged.
    std::thread events([&] {
      for (std::size_t i = 0; !ends; ++i) {
        const auto name = part + std::to_string(i);
        while (!ends && replicas.post(i % 2, name) != 200) {
        }
        if (ends) return;
        answered.insert(name);
        ++count;
      }
    });
    const auto wait_for = [&](std::size_t more) {
      const auto before = count.load();
      require_until([&] { return count >= before + more; }, seconds(90), "acknowledged events");
    };
    wait_for(3);
    primary.crash();
    standby.promote();
    wait_for(5);
    ends = true;
    events.join();
    primary.follow(standby);
  }
  for (const auto& [part, names] : acknowledged) {
    EXPECT_THAT(stored_applications(replicas.at(1), replicas.key, part),
                testing::IsSupersetOf(names));
  }
}

// Sends requests to the replicas in turn, as a load balancer does: one that is stopped gets no new requests, and a
// request whose connection is refused goes to another one. For any thread.
class Balancer {
 public:
  using Request = std::function<HttpReply(const std::string& url)>;

  void add(const std::string& url) {
    const std::lock_guard lock(mutex_);
    urls_.push_back(url);
  }
  void remove(const std::string& url) {
    const std::lock_guard lock(mutex_);
    std::erase(urls_, url);
  }
  HttpReply send(const Request& request) {
    while (true) {
      auto reply = request(next());
      if (reply.status != 0 || reply.body.find("(7)") == std::string::npos) return reply;
    }
  }

 private:
  std::string next() {
    const std::lock_guard lock(mutex_);
    return urls_.at(++turn_ % urls_.size());
  }
  std::mutex mutex_;
  std::vector<std::string> urls_;
  std::size_t turn_ = 0;
};

// Each is stopped in turn while events and questions come, and starts again before the next one stops. As in the chart
// it goes on accepting for a while: connections that it has not accepted when it closes its port are reset by the kernel.
TEST(ReplicaFaults, ARollingRestartFailsNoRequest) {
  Replicas replicas(2, PostgresServer::shared().new_database(), {"--drain-delay=2s"});
  Balancer balancer;
  for (std::size_t i : {0U, 1U}) balancer.add(replicas.at(i).url());
  std::atomic<bool> ends = false;
  std::atomic<std::int64_t> sequence = 1000;
  std::mutex mutex;
  std::vector<std::string> failures;
  std::set<std::string> acknowledged;
  const auto post = [&](int thread) {
    for (int i = 0; !ends; ++i) {
      const auto name = "app-" + std::to_string(thread) + "-" + std::to_string(i % 100);
      const auto reply = balancer.send([&](const std::string& url) {
        return post_application_to(url, replicas.token, live_application(name), ++sequence);
      });
      const std::lock_guard lock(mutex);
      if (reply.status == 200) {
        acknowledged.insert(name);
      } else {
        failures.push_back("event: " + std::to_string(reply.status) + " " + reply.body);
      }
    }
  };
  const auto ask = [&] {
    while (!ends) {
      const auto reply = balancer.send([&](const std::string& url) {
        return http_call({.method = "POST",
                          .url = url + "/2.0/api/graphql",
                          .headers = {replicas.header(), "Content-Type: application/json"},
                          .body = R"({"query":"{runtimes{edges{node{metadata{name}}}}}"})"});
      });
      if (reply.status == 200 && reply.body.find("prod") != std::string::npos) continue;
      const std::lock_guard lock(mutex);
      failures.push_back("question: " + std::to_string(reply.status) + " " + reply.body);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(post, i);
  threads.emplace_back(ask);
  for (int round = 0; round < rounds_of(10); ++round) {
    for (std::size_t i : {0U, 1U}) {
      balancer.remove(replicas.at(i).url());
      EXPECT_EQ(replicas.at(i).stop(), 0);
      replicas.at(i).start();
      balancer.add(replicas.at(i).url());
    }
  }
  ends = true;
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(failures, testing::IsEmpty());
  EXPECT_EQ(stored_applications(replicas.at(0), replicas.key, "app-"), acknowledged);
}

TEST(ReplicaFaults, AKilledReplicaLosesNothingThatWasAcknowledged) {
  const int rounds = rounds_of(50);
  Replicas replicas(2);
  const LiveStream stream(replicas.at(1), replicas.header());
  stream.wait_for("reset");
  std::set<std::string> acknowledged;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 6; ++i) {
      const auto name = "app-" + std::to_string(round) + "-" + std::to_string(i);
      if (i == 3) replicas.at(0).kill();
      // The runtime goes to the replica that serves.
      ASSERT_EQ(replicas.post(i < 3 ? 0 : 1, name), 200);
      acknowledged.insert(name);
    }
    replicas.at(0).start();
  }
  for (const auto& name : acknowledged) stream.wait_for_row(name);
  EXPECT_EQ(stored_applications(replicas.at(1), replicas.key), acknowledged);
  EXPECT_EQ(stream.count("reset"), 1U);
}

}  // namespace
}  // namespace gitops::test
