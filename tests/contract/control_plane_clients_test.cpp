// The requests of the public command line and the Go SDK, byte for byte and with their headers, against the real control
// plane on both engines. Every response has the shape that these clients decode; every refusal has the status and the
// text that they look for.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "contract/client_rules.hpp"
#include "contract/populated_control_plane.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct ControlPlaneClients : PopulatedControlPlaneTest {
  // Sends a body as Go's client sends it.
  static HttpReply send(const std::string& key, const std::string& body,
                        const std::vector<std::string>& more = {}) {
    return send_to(bed(), key, body, more);
  }
  static HttpReply send_to(PopulatedControlPlane& to, const std::string& key,
                           const std::string& body, const std::vector<std::string>& more = {}) {
    std::vector<std::string> headers{"User-Agent: Go-http-client/1.1", "Authorization: " + key,
                                     "Content-Type: application/json", "Accept-Encoding: gzip"};
    headers.insert(headers.end(), more.begin(), more.end());
    if (more.empty()) {
      headers.push_back("Origin: 127.0.0.1:" + std::to_string(to.program().port()));
    }
    return http_call({.method = "POST",
                      .url = to.program().url() + "/2.0/api/graphql",
                      .headers = std::move(headers),
                      .body = body});
  }
  // Sends a request of the file as the administrator, and returns `data`.
  static Json data_of(std::string_view name) {
    const auto reply = send(bed().admin_key, client_request(name));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body, nullptr, false)["data"];
  }
  // Returns the body of a request with other variables.
  static std::string with_variables(std::string_view name, const Json& variables) {
    auto body = Json::parse(client_request(name));
    body["variables"] = variables;
    return body.dump();
  }
};

std::vector<std::string> names_of(const Json& slice) {
  std::vector<std::string> names;
  for (const auto& edge : slice["edges"]) names.push_back(edge["node"]["metadata"]["name"]);
  return names;
}

// A registration by the installer of older command lines.
std::string body_of_older_installer() {
  return Json{{"operationName", "CreateRuntime"},
              {"query",
               "mutation CreateRuntime($args: RuntimeInstallationArgs!) { createRuntime("
               "installationArgs: $args) { name newAccessToken } }"},
              {"variables",
               {{"args",
                 {{"runtimeName", "old"},
                  {"cluster", "https://kubernetes.default.svc"},
                  {"runtimeVersion", "0.0.283"},
                  {"installationType", "CLI"},
                  {"componentNames", {"argo-cd"}}}}}}}
      .dump();
}

bool is_mutation(const ClientRequest& request) {
  return request.body.contains("mutation ");
}

TEST_P(ControlPlaneClients, EveryQueryIsAnsweredInTheShapeThatClientsDecode) {
  std::size_t queries = 0;
  for (const auto& request : client_requests()) {
    if (is_mutation(request)) continue;
    SCOPED_TRACE(request.name);
    ++queries;
    for (const auto* key : {&bed().admin_key, &bed().prod_token}) {
      const auto reply = send(*key, request.body);
      EXPECT_EQ(reply.status, 200) << reply.body;
      EXPECT_THAT(check_response(root_field_of(request), reply.body).findings, IsEmpty());
    }
  }
  EXPECT_EQ(queries, 18U);
}

TEST_P(ControlPlaneClients, TheListsHaveWhatWasReported) {
  EXPECT_THAT(names_of(data_of("runtimes")["runtimes"]), testing::ElementsAre("prod", "stage"));
  EXPECT_THAT(names_of(data_of("clusters-all")["clusters"]),
              testing::ElementsAre("east", "in-cluster"));
  EXPECT_THAT(names_of(data_of("components")["components"]),
              testing::UnorderedElementsAre("cap-app-proxy", "prod-argo-rollouts"));
  EXPECT_THAT(names_of(data_of("git-sources")["gitSources"]), testing::ElementsAre("prod-apps"));
  EXPECT_THAT(names_of(data_of("workflows")["workflows"]), testing::ElementsAre("build"));
  EXPECT_THAT(names_of(data_of("pipelines")["pipelines"]), testing::ElementsAre("push"));
  EXPECT_EQ(data_of("workflow")["workflow"]["metadata"]["uid"], "uid-build");
  EXPECT_EQ(data_of("pipeline")["pipeline"]["spec"]["trigger"], "build");
  // Validation of the chart's values needs both.
  const auto me = data_of("me")["me"];
  EXPECT_EQ(me["activeAccount"]["admins"], Json::array({me["id"]}));
  EXPECT_EQ(me["activeAccount"]["features"]["gitopsPlanEnforcement"], false);
}

TEST_P(ControlPlaneClients, PromotionsAreEmptySlicesInEachForm) {
  for (const auto* name :
       {"promotions", "promotions-filtered", "product-releases", "product-releases-oldest"}) {
    for (const auto& [root, slice] : data_of(name).items()) {
      EXPECT_EQ(slice["edges"], Json::array()) << name;
      if (!std::string_view(name).starts_with("promotions")) continue;
      EXPECT_EQ(slice["pageInfo"], (Json{{"hasNextPage", false},
                                         {"hasPrevPage", false},
                                         {"startCursor", nullptr},
                                         {"endCursor", nullptr}}));
    }
  }
}

TEST_P(ControlPlaneClients, AnEmptyTextStandsForAny) {
  const auto names = [](std::string_view request, const Json& variables) {
    const auto reply = send(bed().admin_key, with_variables(request, variables));
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto data = Json::parse(reply.body, nullptr, false)["data"];
    return data.is_object() && !data.empty() ? names_of(*data.begin()) : std::vector<std::string>();
  };
  const auto filters = [](const char* runtime, const char* object_namespace, const char* project) {
    return Json{
        {"filters", {{"runtime", runtime}, {"namespace", object_namespace}, {"project", project}}}};
  };
  for (const auto& all : {filters("", "", ""), filters("prod", "", ""), filters("", "ci", ""),
                          filters("", "", "shop"), filters("prod", "ci", "shop")}) {
    EXPECT_EQ(names("workflows", all).size(), 1U) << all;
  }
  for (const auto& none : {filters("stage", "", ""), filters("", "x", ""), filters("", "", "x")}) {
    EXPECT_THAT(names("workflows", none), IsEmpty()) << none;
  }
  EXPECT_EQ(names("pipelines", Json{{"filters", Json::object()}}).size(), 1U);
  EXPECT_EQ(names("pipelines", Json::object()).size(), 1U);
  EXPECT_THAT(names("pipelines", {{"filters", {{"name", "none"}}}}), IsEmpty());
  EXPECT_THAT(names("clusters", {{"runtime", "stage"}, {"pagination", {{"after", ""}}}}),
              IsEmpty());
  EXPECT_EQ(names("clusters", {{"runtime", ""}, {"pagination", {{"after", ""}}}}).size(), 2U);
  EXPECT_THAT(names("git-sources", {{"runtime", "no-such-runtime"}}), IsEmpty());
  EXPECT_EQ(names("git-sources", {{"runtime", ""}}).size(), 1U);
}

TEST_P(ControlPlaneClients, PagesOfClustersFollowTheCursor) {
  std::vector<std::string> found;
  std::string after;
  for (int page = 0; page < 3; ++page) {
    const auto reply =
        send(bed().admin_key,
             with_variables("clusters",
                            {{"runtime", ""}, {"pagination", {{"after", after}, {"first", 1}}}}));
    EXPECT_THAT(check_response("clusters", reply.body).findings, IsEmpty());
    const auto slice = Json::parse(reply.body)["data"]["clusters"];
    for (auto& name : names_of(slice)) found.push_back(name);
    if (slice["pageInfo"]["hasNextPage"] != true) break;
    after = slice["pageInfo"]["endCursor"];
  }
  EXPECT_THAT(found, testing::ElementsAre("east", "in-cluster"));
}

TEST_P(ControlPlaneClients, FormsOfARequestThatClientsDifferIn) {
  const auto query = Json::parse(client_request("runtimes"))["query"];
  for (const auto& body :
       {Json{{"query", query}}, Json{{"query", query}, {"variables", nullptr}},
        Json{{"query", query}, {"variables", Json::object()}},
        Json{{"query", query}, {"variables", {{"unused", ""}}}},
        Json{{"query", query}, {"operationName", "Runtimes"}},
        Json{{"query", query}, {"operationName", nullptr}, {"extensions", Json::object()}}}) {
    const auto reply = send(bed().admin_key, body.dump());
    EXPECT_EQ(reply.status, 200) << body;
    EXPECT_THAT(check_response("runtimes", reply.body).findings, IsEmpty());
  }
  for (const auto* origin :
       {"127.0.0.1", "host:99999", "", "null", "://", "https://evil.example"}) {
    const auto reply =
        send(bed().admin_key, client_request("runtimes"), {"origin: " + std::string(origin)});
    EXPECT_EQ(reply.status, 200) << origin << reply.body;
  }
  const auto ask = [](const std::string& header) {
    return http_call({.method = "POST",
                      .url = bed().program().url() + "/2.0/api/graphql",
                      .headers = {header, "Content-Type: application/json; charset=utf-8"},
                      .body = client_request("runtimes")})
        .status;
  };
  EXPECT_EQ(ask("Authorization: Bearer " + bed().admin_key), 200);
  EXPECT_EQ(ask("authorization: " + bed().admin_key), 200);
  EXPECT_EQ(ask("x-access-token: " + bed().admin_key), 200);
}

TEST_P(ControlPlaneClients, WhatIsNotThereIsNullWithoutErrors) {
  EXPECT_EQ(send(bed().admin_key, with_variables("runtime", {{"name", "none"}})).body,
            R"({"data":{"runtime":null}})");
  EXPECT_EQ(send(bed().admin_key, with_variables("runtime", {{"name", ""}})).body,
            R"({"data":{"runtime":null}})");
  EXPECT_EQ(send(bed().admin_key, with_variables("workflow", {{"uid", "none"}})).body,
            R"({"data":{"workflow":null}})");
  EXPECT_EQ(
      send(bed().admin_key, with_variables("pipeline", {{"runtime", "prod"}, {"name", "x"}})).body,
      R"({"data":{"pipeline":null}})");
  // Nothing of this account is there for another one.
  EXPECT_EQ(send(bed().eve_key, client_request("runtime")).body, R"({"data":{"runtime":null}})");
  EXPECT_EQ(send(bed().eve_key, client_request("workflow")).body, R"({"data":{"workflow":null}})");
  EXPECT_EQ(send(bed().eve_key, client_request("pipeline")).body, R"({"data":{"pipeline":null}})");
  for (const auto* name : {"runtimes", "clusters-all", "clusters", "components", "git-sources",
                           "workflows", "pipelines"}) {
    const auto reply = send(bed().eve_key, client_request(name));
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(names_of(*Json::parse(reply.body)["data"].begin()), IsEmpty()) << name;
  }
}

TEST_P(ControlPlaneClients, ABadKeyIs401InOneLine) {
  auto revoked = bed().bob_key;
  revoked.back() = revoked.back() == 'a' ? 'b' : 'a';
  for (const auto& key : {std::string(), std::string("nobody"), std::string("nobody.0000"), revoked,
                          std::string(4'000, 'a')}) {
    for (const auto& request : client_requests()) {
      if (request.name != "me" && request.name != "runtimes" && request.name != "create-runtime")
        continue;
      const auto reply = send(key, request.body);
      EXPECT_EQ(reply.status, 401) << key;
      EXPECT_EQ(Json::parse(reply.body, nullptr, false),
                (Json{{"code", "unauthenticated"}, {"message", "Unauthorized: Invalid token."}}));
      EXPECT_THAT(reply.body, Not(HasSubstr("\n")));
    }
  }
}

TEST_P(ControlPlaneClients, ADocumentOfANewerServerIs400WithTheRawText) {
  const auto replaced = [](std::string_view name, const std::string& from, const std::string& to) {
    auto body = client_request(name);
    body.replace(body.find(from), from.size(), to);
    return body;
  };
  // The command line looks for these bytes with the backslashes, and then sends an older form.
  auto reply = send(bed().admin_key, replaced("promotions", "promotions(", "promotionz("));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr(R"(Cannot query field \"promotionz\" on type \"Query\")"));
  EXPECT_THAT(reply.body, Not(HasSubstr("\n")));
  reply = send(bed().admin_key, replaced("product-releases", "applications {", "applicationz {"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body,
              HasSubstr(R"(Cannot query field \"applicationz\" on type \"ProductReleaseStep\".)"));
  for (const auto* body : {"", "{", "[]", R"({"query":""})", R"({"query":"{"})", R"({"query":7})",
                           R"({"query":"{me{id}}","variables":[]})"}) {
    reply = send(bed().admin_key, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_TRUE(Json::parse(reply.body, nullptr, false).contains("errors")) << reply.body;
    EXPECT_THAT(reply.body, Not(HasSubstr("\n")));
  }
  reply = send(bed().admin_key, with_variables("runtime", Json::object()));
  EXPECT_EQ(reply.status, 400) << reply.body;
}

TEST_P(ControlPlaneClients, ThereAreNoRedirects) {
  for (const auto* path : {"/2.0/api/graphql", "/2.0/api/graphql/", "/2.0//api/graphql", "/2.0/api",
                           "/api/user/", "//api/user", "/2.0", "/"}) {
    for (const auto* method : {"GET", "POST"}) {
      const auto reply = http_call({.method = method,
                                    .url = bed().program().url() + path,
                                    .headers = {"Authorization: " + bed().admin_key}});
      EXPECT_TRUE(reply.status == 200 || reply.status >= 400) << method << path << reply.status;
      EXPECT_THAT(reply.body, Not(HasSubstr("<"))) << "no HTML";
    }
  }
}

// Each mutation in the order of the file, on a control plane of its own.
TEST_P(ControlPlaneClients, EveryMutationIsAnsweredInTheShapeThatClientsDecode) {
  PopulatedControlPlane own(GetParam());
  auto prod_token = own.prod_token;
  const auto register_prod = [&] {
    const auto reply = send_to(own, own.admin_key, client_request("create-runtime"));
    const auto made = Json::parse(reply.body, nullptr, false)["data"]["createRuntime"];
    EXPECT_EQ(made["name"], "prod") << reply.body;
    prod_token = made["newAccessToken"];
  };
  std::size_t mutations = 0;
  for (const auto& request : client_requests()) {
    if (!is_mutation(request)) continue;
    SCOPED_TRACE(request.name);
    ++mutations;
    if (request.name.starts_with("delete") || request.name == "report-errors") register_prod();
    const auto& key = request.name == "report-errors" ? prod_token : own.admin_key;
    const auto reply = send_to(own, key, request.body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(check_response(root_field_of(request), reply.body).findings, IsEmpty());
  }
  EXPECT_EQ(mutations, 8U);
  // The runtime is gone now. The command line reads these words as "nothing to do".
  const auto again = send_to(own, own.admin_key, client_request("delete-runtime"));
  EXPECT_EQ(again.status, 200);
  EXPECT_THAT(again.body, HasSubstr("does not exist"));
  EXPECT_EQ(send_to(own, own.bob_key, client_request("create-runtime")).status, 403);
  // The installer of older command lines fails when there is a member `errors`.
  const auto installed = send_to(own, own.admin_key, body_of_older_installer());
  EXPECT_EQ(installed.status, 200);
  EXPECT_FALSE(Json::parse(installed.body).contains("errors")) << installed.body;
  const auto runtimes = send_to(own, own.admin_key, client_request("runtimes"));
  EXPECT_THAT(check_response("runtimes", runtimes.body).findings, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneClients, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

}  // namespace
}  // namespace gitops::test
