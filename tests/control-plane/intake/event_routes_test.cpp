// The event endpoint on both engines: codings, reports of event sources, the limit of the storage, and bad input, which
// gets an error with a code or goes into quarantine while the events beside it are stored.
#include "control-plane/intake/event_routes.hpp"

#include <span>
#include <zstd.h>

#include <gmock/gmock.h>

#include "common/http/gzip.hpp"
#include "common/net/socket_channel.hpp"
#include "control-plane/intake/intake_fixture.hpp"
#include "control-plane/storage/report_request_store.hpp"
#include "control-plane/storage/source_report_store.hpp"
#include "support/wait.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using testing::HasSubstr;

constexpr const char* kPayloadPath = "/2.0/api/events/event-payload";
constexpr const char* kErrorPath = "/2.0/api/events/error";
constexpr const char* kInventoryPath = "/2.0/api/events/inventory";

std::string zstd_compress(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

std::string event_of(const std::string& name) {
  return app_event(application_of(name));
}

// An event whose object is this text.
std::string event_with(std::string_view object) {
  return Json{{"data",
               {{"object", base64_encode(object)},
                {"source", {{"actualManifest", "{}"}, {"desiredManifest", ""}}}}}}
      .dump();
}

struct EventRoutesContract : testing::TestWithParam<Engine> {
  void with_routes(const std::function<Task<>(IntakeFixture&)>& body) {
    with_intake(GetParam(), body);
  }
};

TEST_P(EventRoutesContract, BodiesMayBeCompressed) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    EXPECT_EQ(co_await fixture.answer(event_of("a")), "200");
    EXPECT_EQ(
        co_await fixture.answer(http::gzip_compress(event_of("b")), {{"Content-Encoding", "gzip"}}),
        "200");
    EXPECT_EQ(co_await fixture.answer(zstd_compress(event_of("c")), {{"Content-Encoding", "zstd"}}),
              "200");
    EXPECT_EQ(co_await fixture.count("object"), 3);
    const auto other = co_await fixture.post("x", {{"Content-Encoding", "br"}});
    EXPECT_EQ(other.status, 415);
    EXPECT_EQ(other.headers.find("Accept-Encoding"), "gzip, deflate, zstd");
  });
}

TEST_P(EventRoutesContract, BodiesThatCannotBeDecodedAreRefused) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const std::string bomb(11'000'000, ' ');
    const auto gzip = http::Headers{{"Content-Encoding", "gzip"}};
    const auto zstd = http::Headers{{"Content-Encoding", "zstd"}};
    auto cut = http::gzip_compress(event_of("a"));
    cut.pop_back();
    EXPECT_EQ(co_await fixture.answer(cut, gzip), "400 invalid_data");
    EXPECT_EQ(co_await fixture.answer("no gzip", gzip), "400 invalid_data");
    EXPECT_EQ(co_await fixture.answer("no zstd", zstd), "400 invalid_data");
    EXPECT_EQ(co_await fixture.answer(http::gzip_compress(bomb), gzip), "413 too_large");
    EXPECT_EQ(co_await fixture.answer(zstd_compress(bomb), zstd), "413 too_large");
    EXPECT_EQ(co_await fixture.answer(event_of("good")), "200");
    EXPECT_EQ(co_await fixture.count("object"), 1);
    EXPECT_EQ(co_await fixture.count("quarantine"), 5);
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_events_quarantined_total 5"));
  });
}

TEST_P(EventRoutesContract, BodiesThatAreStillReadHaveALimit) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        IntakeFixture fixture(accounts, 0, {.max_held_per_account = 40'000});
        const net::Endpoint server(asio::ip::address_v4::loopback(), fixture.served.port());
        const auto slow = must(
            co_await net::SocketChannel::connect(std::span(&server, 1), AccountsFixture::soon()));
        const auto head = "POST /2.0/api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: " +
                          std::string(accounts.sample.prod_token.reveal()) +
                          "\r\nContent-Length: 100000\r\n\r\n";
        const auto part = head + std::string(30'000, ' ');
        must(co_await slow->write(part));
        const auto body = event_of("shop") + std::string(20'000, ' ');
        http::Response refused;
        EXPECT_TRUE(co_await test::eventually(
            [&]() -> Task<bool> {
              refused = co_await fixture.post(body);
              co_return refused.status != 200;
            },
            "the half of another body is counted"));
        EXPECT_EQ(refused.status, 429);
        EXPECT_EQ(refused.headers.find("Retry-After"), "1");
        EXPECT_EQ(co_await fixture.count("quarantine"), 0);
        slow->abort();
        EXPECT_TRUE(co_await test::eventually(
            [&]() -> Task<bool> { co_return (co_await fixture.post(body)).status == 200; },
            "it is given back"));
        co_await fixture.stop();
      },
      GetParam());
}

TEST_P(EventRoutesContract, ARuntimeHasItsNewestRowsInTheQuarantine) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        IntakeFixture fixture(accounts, 0, {.max_quarantined = 10});
        for (int i = 1; i <= 130; ++i) {
          const http::Headers head{{"X-Event-Id", "event-" + std::to_string(i)}};
          EXPECT_EQ(co_await fixture.answer("null", head), "400 invalid_data");
        }
        EXPECT_LE(co_await fixture.count("quarantine"), 10 + 2) << "128 rows, and two later ones";
        EXPECT_EQ(co_await fixture.count("quarantine WHERE event_id = 'event-130'"), 1);
        EXPECT_EQ(co_await fixture.count("quarantine WHERE event_id = 'event-110'"), 0);
        co_await fixture.stop();
      },
      GetParam());
}

TEST_P(EventRoutesContract, TextsThatAreNoEventAreRefused) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const auto named = [](const std::string& name) {
      return event_with(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
                        "\"}}");
    };
    const std::vector<std::string> refused{
        "",
        "null",
        R"({"data":[]})",
        R"({"data":{"object":"%%%"}})",
        std::string(100'000, '['),
        event_with(std::string(10'000, '[')),
        event_with("{\"a\":\"\xff\"}"),
        event_with(R"({"apiVersion":"v1","kind":"ConfigMap"})"),
        event_with(R"({"apiVersion":"v1","kind":"A","metadata":{"name":{"deep":1}}})"),
        named("a\\u0000b"),
        named("a\\nb"),
        named(R"(\ud800)"),
        named(std::string(513, 'n')),
    };
    std::int64_t stored = 0;
    for (const auto& body : refused) {
      EXPECT_EQ(co_await fixture.answer(body), "400 invalid_data") << body.substr(0, 80);
      EXPECT_EQ(co_await fixture.answer(event_of("good-" + std::to_string(++stored))), "200");
    }
    EXPECT_EQ(co_await fixture.count("object"), stored);
    EXPECT_EQ(co_await fixture.count("quarantine"), static_cast<std::int64_t>(refused.size()));
  });
}

TEST_P(EventRoutesContract, UnusualObjectsAreStoredAsTheyAre) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    auto labelled = application_of("labelled");
    for (int i = 0; i < 20'000; ++i) labelled["metadata"]["labels"]["l" + std::to_string(i)] = "";
    const auto bytes = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"zeros",
        "uid":"a\u0000b","labels":{"a\u0000":"\u0000"}},"data":{"x":"\u0000"}})";
    const auto numbers = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"numbers",
        "generation":99999999999999999999999999999},"spec":{"x":-1e400}})";
    const auto unknown =
        R"({"apiVersion":"example.com/v9","kind":"Novelty","metadata":{"name":"unknown"}})";
    for (const auto& body :
         {app_event(labelled), event_with(bytes), event_with(numbers), event_with(unknown)}) {
      EXPECT_EQ(co_await fixture.answer(body), "200") << body.substr(0, 80);
    }
    EXPECT_EQ(co_await fixture.count("object"), 4);
    EXPECT_EQ(co_await fixture.count("label"), EventLimits().max_labels + 1);
    EXPECT_EQ(co_await fixture.count("quarantine"), 0);
  });
}

TEST_P(EventRoutesContract, TheHeadersOfAnEventAreChecked) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    for (const auto* sequence : {"18446744073709551616", "-1", "0", "1.5", "x", ""}) {
      EXPECT_EQ(co_await fixture.answer(event_of("a"), {{"X-Event-Sequence", sequence}}),
                "400 invalid_argument")
          << sequence;
    }
    EXPECT_EQ(co_await fixture.answer(event_of("a"), {{"X-Event-Sequence", "9223372036854775807"},
                                                      {"X-Event-Id", std::string(4'000, 'e')},
                                                      {"X-Reporter", std::string(4'000, 'r')}}),
              "200");
    EXPECT_EQ(co_await fixture.count("object"), 1);
  });
}

TEST_P(EventRoutesContract, TheTokenAloneDecidesWhoseTheEventIs) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const auto& sample = fixture.accounts.sample;
    for (const auto* token : {"", "nobody", "00.11"}) {
      EXPECT_EQ(co_await fixture.answer(event_of("a"), {{"Authorization", token}}),
                "401 unauthenticated");
    }
    EXPECT_EQ(co_await fixture.answer(event_of("a"), authorization(sample.ann_key)),
              "403 forbidden");
    EXPECT_EQ(co_await fixture.answer(event_of("a"), authorization(sample.eve_key)),
              "403 forbidden")
        << "the key of another account";
    // An event that names another runtime and account counts for those of its token.
    auto event = Json::parse(event_of("a"));
    event["data"]["source"]["runtime"] = "stage";
    event["data"]["runtime"] = "stage";
    event["account"] = sample.other.id;
    EXPECT_EQ(co_await fixture.answer(event.dump(), {{"X-Runtime", "stage"}}), "200");
    EXPECT_EQ(co_await fixture.count("object WHERE runtime = 'prod' AND account = " +
                                     std::to_string(sample.acme.number)),
              1);
    EXPECT_EQ(co_await fixture.count("object"), 1);
  });
}

// One that has seen more than the database has.
http::Headers reporter_that_saw(const std::string& position) {
  return {{"X-Reporter", "app/0/1"}, {"X-Intake-Seen", position}};
}

TEST_P(EventRoutesContract, AReporterIsToldWhereTheDatabaseIs) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const auto first = co_await fixture.post(event_of("a"), {{"X-Reporter", "app/0/1"}});
    const auto position = read_position(first.headers.find("X-Intake-Position").value_or(""));
    CO_ASSERT_TRUE(position.has_value());
    EXPECT_FALSE(first.headers.find("X-Intake-Resync"));
    const auto other = co_await fixture.post(
        event_of("a"), {{"X-Reporter", "app/1/2"}, {"X-Intake-Seen", position->epoch + ":9"}});
    EXPECT_EQ(other.headers.find("X-Intake-Position"), position->epoch + ":10");
    EXPECT_EQ(other.headers.find("X-Intake-Resync"), position->epoch + "-10");
  });
}

// As one without an object, which would never hear of a restore.
TEST_P(EventRoutesContract, AReporterWithoutAnEventAsksWhereTheDatabaseIs) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const auto ask = [&](http::Headers headers) {
      return fixture.post("{}", std::move(headers), kInventoryPath);
    };
    const auto first = co_await fixture.post(event_of("a"), {{"X-Reporter", "app/0/1"}});
    const std::string position(first.headers.find("X-Intake-Position").value_or(""));
    const auto same = co_await ask(reporter_that_saw(position));
    EXPECT_EQ(same.status, 200);
    EXPECT_TRUE(same.headers.find("X-Intake-Position"));
    EXPECT_FALSE(same.headers.find("X-Intake-Resync"));
    const auto ahead = co_await ask(reporter_that_saw("0123456789abcdef:5"));
    const std::string token(ahead.headers.find("X-Intake-Resync").value_or(""));
    CO_ASSERT_TRUE(!token.empty());
    const control_plane::Inventory inventory{.token = token, .shards = {0}, .sequence = 8};
    const auto told = co_await fixture.post(control_plane::to_json(inventory),
                                            {{"X-Reporter", "app/0/1"}}, kInventoryPath);
    EXPECT_EQ(told.status, 200);
    EXPECT_EQ((co_await ask({{"X-Intake-Seen", position}})).status, 400) << "nobody asks";
  });
}

TEST_P(EventRoutesContract, AnInventoryEndsWhatIsGone) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const http::Headers head{{"X-Event-Sequence", "7"}};
    for (const auto* name : {"ghost", "shop"}) {
      EXPECT_EQ(co_await fixture.answer(event_of(name), head), "200");
    }
    const auto asked =
        co_await fixture.post(event_of("shop"), reporter_that_saw("0123456789abcdef:5"));
    const std::string token(asked.headers.find("X-Intake-Resync").value_or(""));
    CO_ASSERT_TRUE(!token.empty());
    control_plane::Inventory inventory{.token = token, .shards = {0}, .sequence = 8};
    inventory.objects["uid-shop"] = control_plane::resources_digest({});
    const auto post = [&](const control_plane::Inventory& what) {
      return fixture.post(control_plane::to_json(what), {{"X-Reporter", "app/0/1"}},
                          kInventoryPath);
    };
    auto wrong = inventory;
    wrong.token = "another";
    EXPECT_EQ((co_await post(wrong)).status, 409);
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 1"), 0);
    const auto answer = co_await post(inventory);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, R"({"again":[]})");
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 1 AND name = 'ghost'"), 1);
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 0 AND name = 'shop'"), 1);
    EXPECT_EQ((co_await post(inventory)).status, 409) << "the resync has ended";
    EXPECT_EQ((co_await fixture.post("{}", {}, kInventoryPath)).status, 400);
    EXPECT_EQ((co_await fixture.post("{}", authorization(fixture.accounts.sample.ann_key),
                                     kInventoryPath))
                  .status,
              403);
  });
}

TEST_P(EventRoutesContract, ResourcesThatDifferAreAskedForAndTold) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const http::Headers head{{"X-Event-Sequence", "7"}};
    EXPECT_EQ(co_await fixture.answer(event_of("shop"), head), "200");
    for (const auto* name : {"kept", "ghost"}) {
      const auto config_map = object_of("v1", "ConfigMap", "shop", name);
      EXPECT_EQ(co_await fixture.answer(app_event(config_map, managed_by("shop")), head), "200");
    }
    const auto asked =
        co_await fixture.post(event_of("shop"), reporter_that_saw("0123456789abcdef:5"));
    const std::string token(asked.headers.find("X-Intake-Resync").value_or(""));
    control_plane::Inventory inventory{.token = token, .shards = {0}, .sequence = 8};
    const std::string identity = "/ConfigMap/shop/kept";
    inventory.objects["uid-shop"] = control_plane::resources_digest({identity});
    const auto post = [&] {
      return fixture.post(control_plane::to_json(inventory), {{"X-Reporter", "app/0/1"}},
                          kInventoryPath);
    };
    EXPECT_EQ((co_await post()).body, R"({"again":["uid-shop"]})");
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 1"), 0);
    inventory.is_complete = false;
    inventory.objects.clear();
    inventory.resources["uid-shop"] = {identity};
    inventory.is_last = true;
    EXPECT_EQ((co_await post()).body, R"({"again":[]})");
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 1 AND name = 'ghost'"), 1);
    EXPECT_EQ(co_await fixture.count("object WHERE presence = 1"), 1);
    EXPECT_EQ(co_await fixture.count("reporter WHERE resync <> ''"), 0);
  });
}

TEST_P(EventRoutesContract, AnEventThatCannotBeStoredGoesIntoQuarantine) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    co_await fixture.run_script(poison_script(fixture.accounts.database.engine()));
    const http::Headers head{{"X-Event-Id", "bad"}, {"X-Event-Sequence", "7"}};
    for (int tries = 1; tries < EventFailures::kMaxTries; ++tries) {
      const auto response = co_await fixture.post(event_of("poison"), head);
      EXPECT_EQ(response.status, 503) << tries;
      EXPECT_EQ(response.headers.find("Retry-After"), "5");
      EXPECT_FALSE(response.body.contains("poison")) << "details are for the log";
      EXPECT_EQ(co_await fixture.answer(event_of("good")), "200");
    }
    EXPECT_EQ(co_await fixture.count("quarantine"), 0);
    EXPECT_EQ(co_await fixture.answer(event_of("poison"), head), "200");
    EXPECT_EQ(co_await fixture.count("quarantine WHERE event_id = 'bad' AND runtime = 'prod'"), 1);
    EXPECT_TRUE(fixture.accounts.counts("gitops_control_plane_events_quarantined_total 1"));
    EXPECT_EQ(co_await fixture.count("object"), 1);
  });
}

TEST_P(EventRoutesContract, APayloadOfAWebhookIsStored) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const Json data{
        {"headers", {{"X-Github-Event", {"push"}}}},
        {"body", {{"repository", {{"full_name", "acme/shop"}}}, {"sender", {{"login", "dana"}}}}}};
    Json event{{"specversion", "1.0"}, {"id", "e1"},        {"source", "github"},
               {"type", "github"},     {"subject", "push"}, {"time", "2026-03-04T09:15:27Z"},
               {"data", data}};
    EXPECT_EQ(co_await fixture.answer(event.dump(), {}, kPayloadPath), "200");
    EXPECT_EQ(co_await fixture.answer(event.dump(), {}, kPayloadPath), "200") << "a repeat";
    event["id"] = "e2";
    event.erase("data");
    event["data_base64"] = base64_encode(data.dump());
    EXPECT_EQ(co_await fixture.answer(event.dump(), {}, kPayloadPath), "200");
    const auto found = must(co_await fixture.accounts.database.read(
        AccountsFixture::soon(),
        [account = fixture.accounts.sample.acme.number](store::Connection& db) {
          return list_event_payloads(db, account, "prod", 10);
        }));
    CO_ASSERT_EQ(found.size(), 2U);
    for (const auto& payload : found) {
      EXPECT_EQ(payload.source, "github");
      EXPECT_EQ(payload.subject, "push");
      EXPECT_EQ(payload.repository, "acme/shop");
      EXPECT_EQ(payload.initiator, "dana");
      EXPECT_EQ(payload.at, time_of("2026-03-04T09:15:27Z"));
      EXPECT_EQ(Json::parse(payload.data), data);
    }
    EXPECT_EQ(co_await fixture.answer(R"({"id":"e3"})", {}, kPayloadPath), "400 invalid_data");
    EXPECT_EQ(co_await fixture.answer("no JSON", {}, kPayloadPath), "400 invalid_data");
    EXPECT_EQ(co_await fixture.count("quarantine"), 2);
  });
}

TEST_P(EventRoutesContract, TheNewestErrorOfAnEventSourceIsStored) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    Json report{{"errMsg", "the secret is missing"},
                {"context",
                 {{"object",
                   {{"group", "argoproj.io"},
                    {"version", "v1alpha1"},
                    {"kind", "EventSource"},
                    {"namespace", "gitops"},
                    {"name", "github"},
                    {"labels", {{"a", "b"}}}}}}}};
    EXPECT_EQ(co_await fixture.answer(report.dump(), {}, kErrorPath), "200");
    report["errMsg"] = "no such\0host" + std::string(4'000, '.');
    EXPECT_EQ(co_await fixture.answer(report.dump(), {}, kErrorPath), "200");
    const auto found = must(co_await fixture.accounts.database.read(
        AccountsFixture::soon(),
        [account = fixture.accounts.sample.acme.number](store::Connection& db) {
          return list_source_errors(db, account, "prod", 10);
        }));
    CO_ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().error.kind, "EventSource");
    EXPECT_EQ(found.front().error.name, "github");
    EXPECT_THAT(found.front().error.message, HasSubstr("no such"));
    EXPECT_LE(found.front().error.message.size(), 1'000U + std::string_view("…").size());
    EXPECT_GT(found.front().at, 0);
    EXPECT_EQ(co_await fixture.answer(R"({"errMsg":"x"})", {}, kErrorPath), "400 invalid_data");
    EXPECT_EQ(co_await fixture.answer(report.dump(), authorization(fixture.accounts.sample.ann_key),
                                      kErrorPath),
              "403 forbidden");
  });
}

TEST_P(EventRoutesContract, AFullDatabaseRefusesEventsAndIsReadOn) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        const auto size = must(co_await accounts.database.read(
            AccountsFixture::soon(), [](store::Connection& db) { return database_size(db); }));
        IntakeFixture fixture(accounts, size);
        EXPECT_EQ(co_await fixture.answer(event_of("before")), "200");
        co_await fixture.storage.check();
        for (const auto* path : {"/2.0/api/events", kPayloadPath, kErrorPath}) {
          const auto response = co_await fixture.post(event_of("after"), {}, path);
          EXPECT_EQ(response.status, 503) << path;
          EXPECT_EQ(response.headers.find("Retry-After"), "15");
          EXPECT_EQ(Json::parse(response.body)["code"], "unavailable");
        }
        EXPECT_EQ(co_await fixture.count("object"), 1) << "reading goes on";
        EXPECT_EQ(co_await fixture.answer("x", {{"Authorization", "nobody"}}),
                  "401 unauthenticated");
        co_await fixture.stop();
      },
      GetParam());
}

// Posts events of the Application "cart" until an answer has the head X-Intake-Again, and returns the head.
Task<std::string> told(IntakeFixture& fixture) {
  std::string head;
  EXPECT_TRUE(co_await test::eventually(
      [&]() -> Task<bool> {
        const auto answer = co_await fixture.post(
            event_of("cart"), {{"X-Event-Sequence", "5"}, {"X-Reporter", "app/0/1"}});
        head = answer.headers.find("X-Intake-Again").value_or("");
        co_return !head.empty();
      },
      "the head"));
  co_return head;
}

TEST_P(EventRoutesContract, AReporterIsToldOfARequestUntilTheEventArrives) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    const auto account = fixture.accounts.sample.acme.number;
    const auto open = [&]() -> Task<std::size_t> {
      auto rows = co_await fixture.accounts.write([account](store::Connection& db) {
        return open_report_requests(db, account, micros_at(wall_now()));
      });
      co_return must(std::move(rows)).size();
    };
    const http::Headers first{{"X-Event-Sequence", "7"}, {"X-Reporter", "app/0/1"}};
    const auto before = co_await fixture.post(event_of("shop"), first);
    EXPECT_FALSE(before.headers.find("X-Intake-Again"));
    const auto asked = must(co_await fixture.accounts.write([account](store::Connection& db) {
      const auto shop = must(find_object(db, account, {.name = "shop"}, BodyUse::skip));
      return request_report(db, account, shop->state, micros_at(wall_now()));
    }));
    EXPECT_EQ(co_await told(fixture), "uid-shop;" + std::to_string(asked.at));
    // The event that was stored before, once more, as a sign of life; then the new one.
    const auto heartbeat = co_await fixture.post(event_of("shop"), first);
    EXPECT_TRUE(heartbeat.headers.find("X-Intake-Again"));
    EXPECT_EQ(co_await open(), 1U);
    const auto answer = co_await fixture.post(
        event_of("shop"), {{"X-Event-Sequence", "8"}, {"X-Reporter", "app/0/1"}});
    EXPECT_FALSE(answer.headers.find("X-Intake-Again"));
    EXPECT_EQ(co_await open(), 0U);
  });
}

TEST_P(EventRoutesContract, ARequestThatCannotBeReadTakesNoEventAway) {
  with_routes([](IntakeFixture& fixture) -> Task<> {
    co_await fixture.run_script("DROP TABLE report_request");
    const auto answer = co_await fixture.post(event_of("shop"), {{"X-Reporter", "app/0/1"}});
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.headers.find("X-Intake-Position"));
    EXPECT_FALSE(answer.headers.find("X-Intake-Again"));
  });
}

// All runtimes come through one ingress. Somebody who guesses must not keep those out that are not known yet, as after a
// start.
TEST_P(EventRoutesContract, AC_35_AttemptsCountForTheClientOfAProxy) {
  with_accounts(
      [](AccountsFixture& accounts) -> Task<> {
        const auto client_of = [](http::Exchange& exchange) {
          return std::string(exchange.request().headers.find("X-Forwarded-For").value_or(""));
        };
        IntakeFixture fixture(accounts, 0, {.client_of = client_of});
        const auto guess = [&](int number) {
          return fixture.post("{}", {{"Authorization", "wrong-" + std::to_string(number)},
                                     {"X-Forwarded-For", "203.0.113.9"}});
        };
        int number = 0;
        while (number < 100 && (co_await guess(number)).status != 429) ++number;
        EXPECT_GE(number, 20);
        EXPECT_LT(number, 100);
        EXPECT_EQ(co_await fixture.answer(event_of("shop"), {{"X-Forwarded-For", "10.1.2.3"}}),
                  "200");
        co_await fixture.stop();
      },
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Engines, EventRoutesContract,
                         testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
