// Attacks of outsiders and of users of one account on another, at the real port. Requests are made from the tables of
// routes and fields, so that a new one is attacked without a line here.
#include <algorithm>
#include <regex>

#include <gmock/gmock.h>

#include "common/core/encoding.hpp"
#include "common/http/gzip.hpp"
#include "control-plane/accounts/invitations.hpp"
#include "control-plane/accounts/rules.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/http/schema_documents.hpp"
#include "control-plane/http/whole_port.hpp"
#include "control-plane/views/page.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNowhere = "00000000000000000000abcd";

const std::string kTheirRuntime = "their-runtime";
const std::string kTheirApplication = "their-application";

// Returns an id or a name of the same form that exists nowhere.
std::string absent_of(const std::string& id) {
  return {id.rbegin(), id.rend()};
}

// What the other account has, and what the administrator of this one attacks it with.
struct Victim {
  std::vector<std::string> ids;  // of everything that has an id, and names
  std::vector<std::string> own;  // of the attacker's account, for paths with two ids
  http::Headers key;             // of the attacker
  http::Headers session;
};

Victim make_victim(store::Connection& db, const SampleAccounts& sample) {
  const auto now = micros_at(wall_now());
  const auto theirs = sample.other.number;
  const auto acme = sample.acme.number;
  const auto service = must(create_service_account(db, theirs, {.name = "their-ci"}, now));
  const auto service_key = must(create_user_key(db, theirs, service.id, {.name = "k"}, now));
  const auto rule = must(create_rule(db, theirs,
                                     {.id = {},
                                      .entity_type = "workflows",
                                      .teams = {"t"},
                                      .tags = {},
                                      .actions = {"VIEW"},
                                      .attributes = {}},
                                     now));
  must(db.run(kTestAddRuntime, {theirs, "their-runtime", now}));
  const auto token = must(create_runtime_token(db, theirs, "their-runtime", now));
  const auto adam = must(create_user(db, acme, {.name = "adam", .is_admin = true}, now));
  const auto own_service = must(create_service_account(db, acme, {.name = "ci"}, now));
  return {
      .ids = {sample.other.id, sample.eve.id, service.id, service_key.key.id, rule.id, token.key.id,
              must(create_team(db, theirs, "their-team")),
              must(invite(db, theirs, {.email = "zoe@other.example"}, now)).invitation.user_id,
              std::string(sample.eve_key.reveal().substr(0, 24)), kTheirRuntime, kTheirApplication},
      .own = {sample.acme.id, own_service.id, must(create_team(db, acme, "web"))},
      .key = authorization(must(create_user_key(db, acme, adam.id, {.name = "k"}, now)).text),
      .session = authorization(must(create_session(db, adam.id, now)))};
}

Task<Victim> victim(WholePort& port) {
  co_return must(co_await port.accounts.write(
      [&port](store::Connection& db) -> Result<Victim> { return make_victim(db, port.sample); }));
}

// Reports an Application of the other account.
Task<> report_application(WholePort& port) {
  auto token = co_await port.accounts.write([&port](store::Connection& db) {
    return create_runtime_token(db, port.sample.other.number, "their-runtime",
                                micros_at(wall_now()));
  });
  const auto response =
      co_await port.send("POST", "/2.0/api/events", authorization(must(std::move(token)).text),
                         app_event(application_of("their-application")));
  EXPECT_EQ(response.status, 200) << response.body;
}

Task<std::string> dump(WholePort& port, std::int64_t account) {
  co_return must(co_await port.accounts.write(
      [account](store::Connection& db) -> Result<std::string> { return dump_of(db, account); }));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// A body with every member that a handler reads.
std::string body_with(const std::string& text) {
  return Json{{"name", "x"},
              {"userName", "x"},
              {"email", "x@y.example"},
              {"teamIds", Json::array({text})},
              {"users", Json::array({text})},
              {"account", Json::array({text})},
              {"scopes", Json::array()},
              {"enabled", false},
              {"disabled", true},
              {"password", "a wrong password"},
              {"newPassword", "a long password"}}
      .dump();
}

TEST(Attacks, AC_47_IdsOfAnotherAccountAreAbsentInEveryRoute) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto attack = co_await victim(port);
    co_await report_application(port);
    const auto before = co_await dump(port, port.sample.other.number);
    std::size_t compared = 0;
    for (const auto& route : route_list()) {
      if (route.callers == "anyone" || route.callers == "by field" ||
          route.callers == "tunnel server") {
        continue;
      }
      const auto& caller = route.callers == "user with a session" ? attack.session : attack.key;
      // The first parameter is the foreign id as the others, or one of the attacker's own.
      const bool has_two = route.pattern.find('{') != route.pattern.rfind('{');
      std::vector<std::string> firsts{""};
      if (has_two) firsts.insert(firsts.end(), attack.own.begin(), attack.own.end());
      for (const auto& first : firsts) {
        for (const auto& id : attack.ids) {
          const auto send = [&](const std::string& used) {
            bool is_first = true;
            auto path = path_with(route.pattern, [&](const std::string&) {
              return std::exchange(is_first, false) && !first.empty() ? first : used;
            });
            path += "?subjectType=runtime&subjectReference=" + used + "&userId=" + used +
                    "&callerId=" + used;
            return port.send(std::string(route.method), path, caller, body_with(used));
          };
          const auto foreign = co_await send(id);
          const auto absent = co_await send(absent_of(id));
          EXPECT_EQ(foreign.status, absent.status) << route.method << route.pattern << ' ' << id;
          if (absent.status >= 400) {
            EXPECT_EQ(foreign.body, replaced(absent.body, absent_of(id), id)) << route.pattern;
          }
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 300U);
    EXPECT_EQ(co_await dump(port, port.sample.other.number), before);
    // The attacker reaches what is its own by the same requests.
    EXPECT_EQ((co_await port.send("GET", "/api/service-users/" + attack.own[1], attack.key)).status,
              200);
  });
}

// A response without what differs in each: ids and tokens that it makes, and the times.
std::string stable(std::string text) {
  static const std::regex made("[0-9a-f]{24}(\\.[A-Za-z0-9_-]{43})?|[0-9]{4}-[0-9T:.-]{10,}Z");
  return std::regex_replace(text, made, "#");
}

// The text of an argument: the id, or for an Application all that names it together.
std::string text_for(const std::string& path, const std::string& id, bool is_foreign) {
  if (path.ends_with("after") || path.ends_with("before")) return "";
  const bool is_application = id == kTheirApplication;
  if (is_application && path.ends_with("amespace")) return "argocd";
  const auto& text = is_application && path.ends_with("untime") ? kTheirRuntime : id;
  return is_foreign ? text : absent_of(text);
}

TEST(Attacks, AC_47_IdsOfAnotherAccountAreAbsentInEveryField) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto attack = co_await victim(port);
    co_await report_application(port);
    const auto before = co_await dump(port, port.sample.other.number);
    const SchemaDocuments documents;
    std::size_t compared = 0;
    for (const auto& row : port.graphql.rows) {
      if (row.root == RootType::subscription) continue;  // has no arguments, needs a WebSocket
      const auto& caller = row.permission == Permission::runtime
                               ? authorization(port.sample.prod_token)
                               : attack.key;
      for (const auto& id : attack.ids) {
        for (const bool all : {true, false}) {
          const auto ask = [&](bool is_foreign) {
            return port.ask(caller, documents.document(row, all, [&](const std::string& path) {
              return text_for(path, id, is_foreign);
            }));
          };
          const auto foreign = co_await ask(true);
          const auto absent = co_await ask(false);
          EXPECT_EQ(foreign.status, 200) << foreign.body;
          auto expected = replaced(absent.body, absent_of(id), id);
          expected = replaced(expected, absent_of(kTheirRuntime), kTheirRuntime);
          EXPECT_EQ(stable(foreign.body), stable(expected)) << row.field << ' ' << id;
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 500U);
    EXPECT_EQ(co_await dump(port, port.sample.other.number), before);
  });
}

// The cookie of a response in the form of a request.
std::string cookie_in(const http::Response& response) {
  const auto set = response.headers.find("Set-Cookie").value_or("");
  return std::string(set.substr(0, set.find(';')));
}

Task<http::Response> log_in(WholePort& port, const std::string& name, const std::string& password,
                            http::Headers headers = {}) {
  headers.add("Content-Type", "application/json");
  co_return co_await port.send("POST", "/console/api/v1/login", std::move(headers),
                               Json{{"name", name}, {"password", password}}.dump());
}

TEST(Attacks, AC_48_ASessionThatAnAttackerChoseIsNeverTaken) {
  with_whole_port([](WholePort& port) -> Task<> {
    const std::string chosen = "session=" + std::string(43, 'x');
    const auto in = co_await log_in(port, "bob", "bob's password", {{"Cookie", chosen}});
    CO_ASSERT_EQ(in.status, 200) << in.body;
    EXPECT_NE(cookie_in(in), chosen);
    EXPECT_EQ((co_await port.send("GET", "/api/user", {{"Cookie", chosen}})).status, 401);
    // A session of the attacker does not become that of the user who logs in with it.
    const auto attacker = cookie_in(co_await log_in(port, "eve", "eve's password"));
    const auto taken = co_await log_in(port, "bob", "bob's password", {{"Cookie", attacker}});
    EXPECT_NE(cookie_in(taken), attacker);
    EXPECT_EQ(
        Json::parse(
            (co_await port.send("GET", "/api/user", {{"Cookie", attacker}})).body)["userName"],
        "eve");
    // Every change of what a session may do makes another token.
    auto invited = co_await port.accounts.write([&port](store::Connection& db) {
      return invite(db, port.sample.acme.number, {.email = "zoe@acme.example"},
                    micros_at(wall_now()));
    });
    const auto accepted =
        co_await port.send("POST", "/console/api/v1/invitation",
                           {{"Cookie", chosen}, {"Content-Type", "application/json"}},
                           Json{{"token", must(std::move(invited)).token.reveal()},
                                {"name", "zoe"},
                                {"password", "zoe's password"}}
                               .dump());
    EXPECT_EQ(accepted.status, 200) << accepted.body;
    EXPECT_NE(cookie_in(accepted), chosen);
    const auto changed = co_await port.send(
        "POST", "/api/user/changeaccount/" + port.sample.acme.id, {{"Cookie", cookie_in(in)}});
    EXPECT_EQ(changed.status, 200);
    EXPECT_NE(cookie_in(changed), cookie_in(in));
    EXPECT_EQ((co_await port.send("GET", "/api/user", {{"Cookie", cookie_in(in)}})).status, 401);
  });
}

// Tables that a refused request does change: the audit log, and the times of sessions.
std::string without_traces(const std::string& dump) {
  std::istringstream lines(dump);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("audit: ") && !line.starts_with("session: ")) rest += line + "\n";
  }
  return rest;
}

TEST(Attacks, AC_49_NoPageOfAnotherSiteChangesAnything) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto cookie = cookie_in(co_await log_in(port, "ann", "ann's password"));
    const auto before = without_traces(co_await dump(port, 0));
    std::size_t changes = 0;
    for (const auto& route : route_list()) {
      if (route.method == "GET" || route.callers == "tunnel server") continue;
      ++changes;
      const auto path =
          path_with(route.pattern, [&](const std::string&) { return port.sample.bob.id; });
      for (const auto& [field, value] :
           {std::pair("Sec-Fetch-Site", "cross-site"), std::pair("Sec-Fetch-Site", "same-site"),
            std::pair("Origin", "https://evil.example"), std::pair("Origin", "null")}) {
        const auto body = route.callers == "by field"
                              ? R"({"query":"mutation{suggestIscRepo(suggestedSharedConfigRepo:)"
                                R"(\"https://evil.example/x.git\")}"})"
                              : body_with(port.sample.bob.id);
        const auto response = co_await port.send(
            std::string(route.method), path,
            {{"Cookie", cookie}, {field, value}, {"Content-Type", "application/json"}}, body);
        EXPECT_TRUE(response.status == 401 || response.status == 403)
            << route.pattern << ' ' << field << ' ' << response.status << response.body;
      }
    }
    EXPECT_GT(changes, 25U);
    EXPECT_EQ(without_traces(co_await dump(port, 0)), before);
    // The session is as good as before: the user's own pages go on.
    EXPECT_EQ((co_await port.send("GET", "/api/user",
                                  {{"Cookie", cookie}, {"Sec-Fetch-Site", "same-origin"}}))
                  .status,
              200);
  });
}

TEST(Attacks, AC_50_NoMessageTellsWhichUsersExist) {
  with_whole_port([](WholePort& port) -> Task<> {
    must(co_await port.accounts.write([&port](store::Connection& db) -> Result<void> {
      const auto now = micros_at(wall_now());
      const auto acme = port.sample.acme.number;
      must(create_service_account(db, acme, {.name = "robot"}, now));
      must(invite(db, acme, {.email = "zoe@acme.example", .name = "zoe"}, now));
      const auto gone = must(create_user(db, acme, {.name = "gone"}, now));
      return set_disabled(db, gone.id, true);
    }));
    const auto first = co_await log_in(port, "nobody", "a password");
    EXPECT_EQ(first.status, 401);
    for (const auto* name : {"bob", "gone", "zoe", "zoe@acme.example", "robot", "", "a\nb"}) {
      const auto other = co_await log_in(port, name, "a password");
      EXPECT_EQ(other.status, first.status) << name;
      EXPECT_EQ(other.body, first.body) << name;
    }
    // An administrator of an account learns nothing of users of another one: neither by a reset nor by an invitation.
    const auto attack = co_await victim(port);
    const auto reset = [&](const std::string& id) {
      return port.send("PUT", "/console/api/v1/users/" + id + "/password", attack.key,
                       R"({"password":"a long password"})");
    };
    const auto absent = co_await reset(kNowhere);
    EXPECT_EQ(absent.status, 404);
    EXPECT_EQ(replaced((co_await reset(port.sample.eve.id)).body, port.sample.eve.id, kNowhere),
              absent.body);
    must(co_await port.accounts.write([&port](store::Connection& db) {
      return set_user_details(db, port.sample.eve.id, "eve", "eve@other.example");
    }));
    const auto invite_of = [&](const char* email) {
      return port.send("POST", "/api/accounts/" + port.sample.acme.id + "/adduser", attack.key,
                       Json{{"userDetails", email}}.dump());
    };
    const auto known = co_await invite_of("eve@other.example");
    const auto unknown = co_await invite_of("amy@other.example");
    EXPECT_EQ(known.status, 200);
    EXPECT_EQ(Json::parse(known.body)["status"], Json::parse(unknown.body)["status"]);
    EXPECT_NE(Json::parse(known.body)["_id"], port.sample.eve.id);
  });
}

TEST(Attacks, AC_51_PasswordsAreNotSprayed) {
  with_whole_port([](WholePort& port) -> Task<> {
    // One password for many users, from one address.
    int tried = 0;
    for (int i = 0; i < 40; ++i) {
      const auto response = co_await log_in(port, "user-" + std::to_string(i), "Spring2026!",
                                            {{"X-Test-Address", "198.51.100.7"}});
      if (response.status == 401) ++tried;
    }
    EXPECT_EQ(tried, 20);
    EXPECT_EQ((co_await log_in(port, "bob", "bob's password", {{"X-Test-Address", "198.51.100.7"}}))
                  .status,
              429)
        << "the right one, too";
    // Many passwords for one user, from many addresses.
    tried = 0;
    for (int i = 0; i < 40; ++i) {
      const auto response = co_await log_in(port, "eve", "guess " + std::to_string(i),
                                            {{"X-Test-Address", "203.0.113." + std::to_string(i)}});
      if (response.status == 401) ++tried;
    }
    EXPECT_EQ(tried, 10);
    // Nobody else is locked out.
    EXPECT_EQ(
        (co_await log_in(port, "bob", "bob's password", {{"X-Test-Address", "192.0.2.9"}})).status,
        200);
  });
}

TEST(Attacks, AC_52_BombsAreRefused) {
  with_whole_port([](WholePort& port) -> Task<> {
    auto ann = authorization(port.sample.ann_key);
    auto zipped = ann;
    zipped.add("Content-Encoding", "gzip");
    zipped.add("Content-Type", "application/json");
    const auto bomb = http::gzip_compress(std::string(64 * 1024 * 1024, ' '));
    EXPECT_EQ((co_await port.send("POST", "/api/service-users", zipped,
                                  http::gzip_compress(std::string(1'000'000, ' '))))
                  .status,
              413);
    const auto query = co_await port.send("POST", "/2.0/api/graphql", zipped, bomb);
    EXPECT_EQ(query.status, 413) << query.body;
    const auto deep = std::string(30'000, '[') + std::string(30'000, ']');
    const auto nested = co_await port.send("POST", "/api/service-users", ann,
                                           R"({"userName":"x","teamIds":)" + deep + "}");
    EXPECT_EQ(nested.status, 400) << nested.body;
    std::string aliases = "{";
    for (int i = 0; i < 20'000; ++i) aliases += "a" + std::to_string(i) + ":me{name} ";
    EXPECT_EQ((co_await port.ask(ann, aliases + "}")).status, 400);
    std::string fields = "{me";
    for (int i = 0; i < 2'000; ++i) fields += "{activeAccount";
    EXPECT_EQ((co_await port.ask(ann, fields)).status, 400);
    EXPECT_EQ((co_await port.ask(ann, "{me{name}}")).status, 200);
  });
}

TEST(Attacks, AC_53_SqlInEveryTextIsOnlyText) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto attack = co_await victim(port);
    const SchemaDocuments documents;
    const auto users = [&]() -> Task<std::size_t> {
      co_return must(co_await port.accounts.write([](store::Connection& db) {
        return list_users(db);
      })).size();
    };
    const auto before = co_await dump(port, port.sample.other.number);
    const auto count = co_await users();
    for (const std::string text : {"'; DROP TABLE users; --", "\" OR \"1\"=\"1", "1 OR 1=1", "$1",
                                   "%", "_", "\\'; DELETE FROM member; --"}) {
      for (const auto& row : port.graphql.rows) {
        if (row.root == RootType::subscription) continue;  // has no arguments
        const auto& caller = row.permission == Permission::runtime
                                 ? authorization(port.sample.prod_token)
                                 : attack.key;
        const auto response = co_await port.ask(
            caller, documents.document(row, true, [&text](const std::string&) { return text; }));
        EXPECT_EQ(response.status, 200) << row.field << response.body;
        EXPECT_THAT(response.body, Not(HasSubstr("INTERNAL"))) << row.field;
      }
      for (const auto& route : route_list()) {
        if (route.callers == "by field" || route.callers == "tunnel server") continue;
        const auto path =
            path_with(route.pattern, [&text](const std::string&) { return percent_encode(text); });
        const auto response =
            co_await port.send(std::string(route.method), path, attack.key, body_with(text));
        EXPECT_LT(response.status, 500) << route.pattern << response.body;
      }
    }
    EXPECT_EQ(co_await users(), count);
    EXPECT_EQ(co_await dump(port, port.sample.other.number), before);
  });
}

TEST(Attacks, AC_54_CursorsMadeByHandOpenNothing) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto attack = co_await victim(port);
    co_await report_application(port);
    const std::string document =
        "{applications(pagination:{first:10,after:\"%\"}){edges{node{metadata{name}}}}}";
    const auto of = [&](const std::string& cursor) {
      return port.ask(attack.key, replaced(document, "%", cursor));
    };
    for (const auto* wrong : {"x", "AAAA", "eyJhIjoxfQ", "-1", "' OR 1=1 --", "////"}) {
      const auto response = co_await of(wrong);
      EXPECT_EQ(response.status, 200) << response.body;
      EXPECT_THAT(response.body, HasSubstr("INVALID_ARGUMENT")) << wrong;
    }
    // A cursor that is valid names a place, and gives no sight of what is there.
    for (std::size_t numbers = 0; numbers < 4; ++numbers) {
      for (const std::int64_t number : {std::int64_t{0}, std::int64_t{1}, INT64_MAX, INT64_MIN}) {
        const auto response = co_await of(cursor_of(
            {.numbers = std::vector<std::int64_t>(numbers, number), .text = "their-applicatio"}));
        EXPECT_EQ(response.status, 200);
        EXPECT_THAT(response.body, Not(HasSubstr("their-application"))) << response.body;
        EXPECT_THAT(response.body, Not(HasSubstr("INTERNAL"))) << response.body;
      }
    }
    for (const auto* before : {"-1", "0", "x", "99999999999999999999", "1;--"}) {
      const auto response = co_await port.send(
          "GET", "/console/api/v1/audit?before=" + percent_encode(before), attack.key);
      EXPECT_EQ(response.status, 400) << before;
    }
  });
}

std::string hex_of(std::string_view text) {
  std::string hex;
  for (const char c : hex_encode(text)) hex += c >= 'a' ? static_cast<char>(c - 32) : c;
  return hex;
}

TEST(Attacks, AC_55_SecretsAreShownOnceAndKeptNowhere) {
  with_whole_port([](WholePort& port) -> Task<> {
    const auto ann = authorization(port.sample.ann_key);
    const auto acme = "/api/accounts/" + port.sample.acme.id;
    std::map<std::string, std::string> secrets{{"a password", "canary-password-1"},
                                               {"a reset password", "canary-password-2"},
                                               {"a sealing key", "canary-sealing-key"}};
    const auto key = co_await port.send("POST", "/api/auth/key", ann, R"({"name":"k"})");
    secrets["an API key"] = key.body.substr(25);
    const auto service = Json::parse(
        (co_await port.send("POST", "/api/service-users", ann, R"({"userName":"ci"})")).body);
    const auto service_key = co_await port.send(
        "POST", "/api/auth/key/service-user/" + service["_id"].get<std::string>(), ann,
        R"({"name":"k"})");
    secrets["a key of a service account"] = service_key.body.substr(25);
    const auto invited = Json::parse(
        (co_await port.send("POST", acme + "/adduser", ann, R"({"userDetails":"z@acme.example"})"))
            .body);
    const auto url = invited["inviteUrl"].get<std::string>();
    secrets["a token of an invitation"] = url.substr(url.find('=') + 1);
    const http::Headers json{{"Content-Type", "application/json"}};
    co_await port.send("GET", "/console/api/v1/invitation" + url.substr(url.find('?')));
    const auto joined = co_await port.send("POST", "/console/api/v1/invitation", json,
                                           Json{{"token", secrets["a token of an invitation"]},
                                                {"name", "zoe"},
                                                {"password", secrets["a password"]}}
                                               .dump());
    CO_ASSERT_EQ(joined.status, 200) << joined.body;
    secrets["a session"] = cookie_in(joined).substr(8);
    co_await log_in(port, "zoe", secrets["a password"]);
    const auto id = Json::parse(joined.body)["_id"].get<std::string>();
    co_await port.send("PUT", "/console/api/v1/users/" + id + "/password", ann,
                       Json{{"password", secrets["a reset password"]}}.dump());
    const auto created = co_await port.ask(
        ann,
        R"(mutation{createRuntime(installationArgs:{runtimeName:"new",cluster:"c",runtimeVersion:"1"}){newAccessToken}})");
    const auto token =
        Json::parse(created.body)["data"]["createRuntime"]["newAccessToken"].get<std::string>();
    secrets["a token of a runtime"] = token.substr(25);
    co_await port.ask(
        authorization(Secret(std::string(token))),
        "mutation{saveSealingKey(privateKey:\"" +
            base64_encode("-----BEGIN PRIVATE KEY-----\n" + secrets["a sealing key"] + "\n") +
            "\")}");
    co_await port.audit.idle(AccountsFixture::soon());
    // What is written, and what is read again.
    std::map<std::string, std::string> places{{"the log", port.accounts.log.text()},
                                              {"the database", co_await dump(port, 0)}};
    for (const auto& route : route_list()) {
      if (route.method != "GET") continue;
      const auto path = path_with(route.pattern, [&](const std::string&) { return id; });
      places[path] = (co_await port.send("GET", path, ann)).body;
    }
    places["audit"] = (co_await port.send("GET", "/console/api/v1/audit?format=csv", ann)).body;
    EXPECT_THAT(places["audit"], HasSubstr("POST /api/service-users")) << "the log has entries";
    EXPECT_THAT(places["the database"], HasSubstr("zoe"));
    for (const auto& [place, text] : places) {
      for (const auto& [what, secret] : secrets) {
        EXPECT_GE(secret.size(), 15U) << what;
        EXPECT_FALSE(text.contains(secret)) << what << " in " << place;
        EXPECT_FALSE(text.contains(hex_of(secret))) << what << " in " << place;
      }
    }
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
