// Responses that break the public clients, one for each way, are found by the rules; responses that they take are not.
#include "contract/client_rules.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> findings(std::string_view root_field, const Json& value) {
  return check_response(root_field, Json{{"data", {{root_field, value}}}}.dump()).findings;
}

Json slice_of(const Json& node) {
  return {{"edges", {{{"node", node}}}}};
}

Json runtime_node() {
  return {{"metadata", {{"name", "prod"}, {"namespace", nullptr}}},
          {"self", nullptr},
          {"syncStatus", "UNKNOWN"},
          {"healthStatus", nullptr},
          {"managed", false},
          {"runtimeVersion", "0.1.0-rc.1"},
          {"installationStatus", "IN_PROGRESS"},
          {"installationType", "HELM"}};
}

TEST(ClientRules, AcceptWhatClientsDecode) {
  EXPECT_THAT(findings("runtimes", slice_of(runtime_node())), IsEmpty());
  EXPECT_THAT(findings("runtime", nullptr), IsEmpty());
  EXPECT_THAT(findings("updateCsdpSettings", Json::object()), IsEmpty());
  EXPECT_THAT(findings("deleteRuntime", 0), IsEmpty());
  EXPECT_THAT(check_response("runtime", R"({"data":{"runtime":null},"errors":null})").findings,
              IsEmpty());
  EXPECT_EQ(
      check_response("runtimes", Json{{"data", {{"runtimes", slice_of(runtime_node())}}}}.dump())
          .values,
      13U);
}

TEST(ClientRules, FindAnEnvelopeThatFailsOrSucceedsWithNothing) {
  for (const auto* body : {"", "[]", "{}", R"({"data":null})", R"({"data":{}})",
                           R"({"data":{"runtime":null,"me":null}})", R"({"data":{"me":null}})",
                           R"({"data":{"runtime":null},"errors":[]})",
                           R"({"data":{"runtime":null},"errors":[{"message":"m"}]})"}) {
    EXPECT_EQ(check_response("runtime", body).findings.size(), 1U) << body;
  }
  EXPECT_THAT(findings("noSuchField", nullptr), ElementsAre("no rule is about noSuchField"));
}

TEST(ClientRules, FindAWordThatTheSdkDoesNotKnow) {
  for (const auto* member : {"syncStatus", "installationStatus", "installationType"}) {
    for (const auto& word : {Json(), Json(""), Json("Synced"), Json("CLI"), Json(7)}) {
      auto node = runtime_node();
      node[member] = word;
      EXPECT_THAT(findings("runtimes", slice_of(node)),
                  ElementsAre("runtimes.edges.node." + std::string(member) + " is " + word.dump()));
    }
  }
  auto node = runtime_node();
  node["healthStatus"] = "Healthy";
  EXPECT_EQ(findings("runtimes", slice_of(node)).size(), 1U);
  node["healthStatus"] = "";
  EXPECT_EQ(findings("runtimes", slice_of(node)).size(), 1U);
}

TEST(ClientRules, FindNullsThatEndTheCommandLine) {
  const auto without = [](Json value, const std::vector<const char*>& path) {
    Json* at = &value;
    for (const auto* name : path) at = &(*at)[name];
    *at = nullptr;
    return value;
  };
  EXPECT_EQ(findings("runtimes", nullptr).size(), 1U);
  EXPECT_EQ(findings("runtimes", {{"edges", nullptr}}).size(), 1U);
  EXPECT_EQ(findings("runtimes", slice_of(nullptr)).size(), 1U);
  const Json workflow{{"metadata", {{"uid", ""}, {"namespace", ""}}},
                      {"spec", {{"templates", Json::array()}}},
                      {"status", {{"phase", "Running"}}}};
  EXPECT_THAT(findings("workflow", workflow), IsEmpty());
  EXPECT_EQ(findings("workflow", without(workflow, {"metadata", "uid"})).size(), 1U);
  EXPECT_EQ(findings("workflow", without(workflow, {"metadata", "namespace"})).size(), 1U);
  EXPECT_EQ(findings("workflow", without(workflow, {"status", "phase"})).size(), 1U);
  const Json cluster{{"info", {{"connectionState", {{"status", "Failed"}}}}}};
  EXPECT_THAT(findings("clusters", slice_of(cluster)), IsEmpty());
  EXPECT_EQ(findings("clusters", slice_of(without(cluster, {"info"}))).size(), 1U);
  EXPECT_EQ(findings("clusters", slice_of(without(cluster, {"info", "connectionState"}))).size(),
            1U);
  const Json component{{"self", {{"status", {{"syncStatus", "SYNCED"}}}}}};
  EXPECT_THAT(findings("components", slice_of(component)), IsEmpty());
  EXPECT_THAT(findings("components", slice_of(without(component, {"self"}))), IsEmpty());
  EXPECT_EQ(findings("components", slice_of(without(component, {"self", "status"}))).size(), 1U);
  EXPECT_EQ(findings("pipeline", {{"metadata", {{"namespace", nullptr}}}}).size(), 1U);
  const Json me{{"activeAccount", {{"name", "acme"}, {"features", Json::object()}}}};
  EXPECT_THAT(findings("me", me), IsEmpty());
  EXPECT_EQ(findings("me", without(me, {"activeAccount", "features"})).size(), 1U);
  EXPECT_EQ(findings("me", without(me, {"activeAccount", "name"})).size(), 1U);
}

TEST(ClientRules, FindTheOtherValuesThatFail) {
  const Json templates{{"spec", {{"templates", {{{"name", "main"}}}}}}};
  EXPECT_THAT(findings("workflow", templates),
              ElementsAre(HasSubstr("workflow.spec.templates is")));
  for (const auto& value : {Json(true), Json("ok"), Json(1)}) {
    EXPECT_EQ(findings("updateCsdpSettings", value).size(), 1U) << value;
  }
  for (const auto& value : {Json(true), Json("1")}) {
    EXPECT_EQ(findings("deleteRuntime", value).size(), 1U) << value;
  }
  EXPECT_EQ(findings("limitsStatus", {{"usage", nullptr}, {"limits", {{"clusters", 1}}}}).size(),
            1U);
  for (const auto& version :
       {Json(), Json(""), Json("latest"), Json("v1.2.3"), Json("1.2"), Json("01.2.3")}) {
    auto node = runtime_node();
    node["runtimeVersion"] = version;
    EXPECT_EQ(findings("runtimes", slice_of(node)).size(), 1U) << version;
  }
  const auto page = [](const Json& cursor) {
    return Json{{"edges", Json::array()},
                {"pageInfo", {{"hasNextPage", true}, {"endCursor", cursor}}}};
  };
  EXPECT_THAT(findings("clusters", page("c")), IsEmpty());
  EXPECT_EQ(findings("clusters", page(nullptr)).size(), 1U);
  EXPECT_EQ(findings("clusters", {{"edges", Json::array()}, {"pageInfo", nullptr}}).size(), 1U);
  const Json errors{{"self", {{"errors", {{{"level", "error"}}}}}}};
  EXPECT_EQ(findings("components", slice_of(errors)).size(), 1U);
}

}  // namespace
}  // namespace gitops::test
