#include "app-proxy/resolvers/applications.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

TEST(RenderApplication, UsesTheSchemasWords) {
  EXPECT_EQ(enum_word("OutOfSync"), "OUT_OF_SYNC");
  EXPECT_EQ(enum_word("Healthy"), "HEALTHY");
  EXPECT_EQ(enum_word("OUT_OF_SYNC"), "OUT_OF_SYNC");
  EXPECT_EQ(enum_word(""), "");
}

TEST(RenderApplication, HasWhatClientsSelect) {
  const Json app{{"metadata", {{"name", "shop"}, {"namespace", "argocd"}, {"uid", "u"}}},
                 {"spec",
                  {{"project", "default"},
                   {"source", {{"repoURL", "https://g/x.git"}, {"targetRevision", "main"}}},
                   {"destination", {{"server", "https://kubernetes.default.svc"}}}}},
                 {"status",
                  {{"health", {{"status", "Progressing"}}},
                   {"sync", {{"status", "OutOfSync"}, {"revision", "r"}}},
                   {"history", {{{"id", 4}}, {{"id", 5}}}}}}};
  const auto shown = Json::parse(render_application(app.dump(), "prod"));
  EXPECT_EQ(shown["metadata"]["runtime"], "prod");
  EXPECT_EQ(shown["metadata"]["cluster"], "https://kubernetes.default.svc");
  EXPECT_EQ(shown["metadata"]["kind"], "Application");
  // An object even when unset: clients look for "automated" in it.
  EXPECT_EQ(shown["spec"]["syncPolicy"], Json::object());
  EXPECT_EQ(shown["status"]["health"]["status"], "PROGRESSING");
  EXPECT_EQ(shown["status"]["sync"], (Json{{"status", "OUT_OF_SYNC"}, {"revision", "r"}}));
  EXPECT_EQ(shown["status"]["reconciledAt"], "");
  EXPECT_EQ(shown["calculatedInfo"]["syncPolicy"], "Manual");
  EXPECT_EQ(shown["calculatedInfo"]["targetRevision"], "main");
  EXPECT_EQ(shown["calculatedInfo"]["syncStatus"], "OUT_OF_SYNC");
  EXPECT_EQ(shown["calculatedStatus"]["minHistoryId"], 4);

  Json running = app;
  running["status"]["operationState"] = {{"phase", "Running"}};
  EXPECT_EQ(Json::parse(render_application(running.dump(), "prod"))["status"]["sync"]["status"],
            "SYNCING");
}

TEST(RenderApplication, APolicyThatIsDisabledIsManual) {
  const auto policy = [](const std::string& automated) {
    const std::string app = R"({"spec":{"syncPolicy":{"automated":)" + automated + "}}}";
    return Json::parse(render_application(app, "prod"))["calculatedInfo"]["syncPolicy"];
  };
  EXPECT_EQ(policy("{}"), "Automated");
  EXPECT_EQ(policy(R"({"enabled":true,"prune":true})"), "Automated");
  EXPECT_EQ(policy(R"({"enabled":false,"prune":true})"), "Manual");
  EXPECT_EQ(policy("null"), "Manual");
}

// Go escapes these characters in JSON.
TEST(RenderApplication, TakesTextsWithEscapes) {
  const auto shown = Json::parse(
      render_application(R"({"spec":{"source":{"repoURL":"r","targetRevision":"a\u0026b"},)"
                         R"("destination":{"name":"\"edge\" \u003c1\u003e"}}})",
                         "prod"));
  EXPECT_EQ(shown["metadata"]["cluster"], "\"edge\" <1>");
  EXPECT_EQ(shown["calculatedInfo"]["targetRevision"], "a&b");
}

TEST(RenderApplication, OfAnEmptyObjectIsComplete) {
  const auto shown = Json::parse(render_application("{}", "prod"));
  EXPECT_EQ(shown["status"]["health"]["status"], "UNKNOWN");
  EXPECT_EQ(shown["status"]["sync"]["status"], "UNKNOWN");
  EXPECT_EQ(shown["calculatedInfo"]["specSource"]["repoURL"], "");
}

}  // namespace
}  // namespace gitops::app_proxy
