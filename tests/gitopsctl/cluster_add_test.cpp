// `cluster add`: the real gitopsctl, a real control plane, an API server of a few lines, and an app-proxy that answers as
// each test wants. The token of the account is never printed.
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "gitopsctl/action_bed.hpp"
#include "support/process.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

constexpr const char* kJson = "Content-Type: application/json\r\n";
constexpr const char* kToken = "canary-account-token";

// The API server of the cluster: it stores nothing, and fills in the token at the second look.
class Cluster {
 public:
  Cluster()
      : server_("kube", [this](const auto& request, RawSocket& socket) {
          return answer(request, socket);
        }) {}

  // Refuses requests to a path that contains `part`, with a Status.
  void refuse(std::string part, int code, const std::string& reason,
              const std::string& cause = {}) {
    const std::lock_guard lock(mutex_);
    refused_ = std::move(part);
    Json status{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", "so it is"}};
    if (!cause.empty()) status["details"]["causes"] = Json::array({{{"reason", cause}}});
    status_ = std::to_string(code) + " " + reason;
    status_body_ = status.dump();
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_.port());
  }
  [[nodiscard]] std::vector<RecordedRequest> requests() const { return server_.requests(); }

 private:
  bool answer(const RecordedRequest& request, RawSocket& socket) {
    const std::lock_guard lock(mutex_);
    if (!refused_.empty() && request.target().contains(refused_)) {
      return RecordingUpstream::reply(socket, status_body_, kJson, status_);
    }
    if (!request.head.starts_with("GET ")) {
      return RecordingUpstream::reply(socket, request.body, kJson);
    }
    Json secret{{"kind", "Secret"}, {"metadata", {{"name", "argocd-manager-long-lived-token"}}}};
    if (++looks_ % 2 == 0) secret["data"]["token"] = base64_encode(kToken);
    return RecordingUpstream::reply(socket, secret.dump(), kJson);
  }

  std::mutex mutex_;
  int looks_ = 0;
  std::string refused_;
  std::string status_;
  std::string status_body_;
  RecordingUpstream server_;
};

class ClusterAdd : public testing::Test {
 protected:
  ClusterAdd() {
    bed().app_proxy().forget();
    bed().report_clusters(2);
    bed().answer_with("201 Created", kJson, "{}");
    point_kubeconfig_at(cluster_.url());
  }
  static ActionBed& bed() { return action_bed(); }

  void point_kubeconfig_at(const std::string& url) {
    write_file(folder_.path() / "kubeconfig",
               "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
               "contexts: [{name: c, context: {cluster: k, user: u}}, "
               "{name: west, context: {cluster: k, user: u}}]\n"
               "clusters: [{name: k, cluster: {server: '" +
                   url + "/'}}]\nusers: [{name: u, user: {token: canary-own-token}}]\n");
  }
  CommandResult add(const Words& more, const std::string& url = {}) const {
    Words words{std::string(GITOPS_BIN_DIR) + "/gitopsctl", "cluster", "add"};
    words.insert(words.end(), more.begin(), more.end());
    const Environment environment{{"HTTP_PROXY", std::nullopt},
                                  {"http_proxy", std::nullopt},
                                  {"HOME", folder_.path()},
                                  {"KUBECONFIG", (folder_.path() / "kubeconfig").string()},
                                  {"CODEFRESH_URL", url.empty() ? bed().program().url() : url},
                                  {"CODEFRESH_TOKEN", bed().key}};
    auto result = run_command(words, environment);
    EXPECT_THAT(result.out + result.err, AllOf(Not(HasSubstr(bed().key)), Not(HasSubstr("canary")),
                                               Not(HasSubstr(base64_encode(kToken)))));
    return result;
  }
  static std::vector<RecordedRequest> posts() { return bed().app_proxy().requests(); }

  TempDir folder_;
  Cluster cluster_;
};

TEST_F(ClusterAdd, MakesTheAccountAndSendsItsTokenToTheRuntime) {
  const auto result = add({"east", "--runtime=prod", "--labels=env=prod", "--yes"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Done: cluster prod/east is added, at " + cluster_.url() + "\n");
  std::vector<std::string> paths;
  for (const auto& request : cluster_.requests()) {
    const auto target = request.target();
    if (request.head.starts_with("PATCH ")) paths.push_back(target.substr(0, target.find('?')));
  }
  EXPECT_THAT(
      paths,
      testing::ElementsAre(
          "/api/v1/namespaces/kube-system/serviceaccounts/argocd-manager",
          "/apis/rbac.authorization.k8s.io/v1/clusterroles/argocd-manager-role",
          "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/argocd-manager-role-binding",
          "/api/v1/namespaces/kube-system/secrets/argocd-manager-long-lived-token"));
  const auto posted = posts();
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_THAT(posted[0].head, AllOf(StartsWith("POST /app-proxy/api/clusters "),
                                    HasSubstr("uthorization: " + bed().key)));
  const auto body = Json::parse(posted[0].body);
  EXPECT_EQ(body["name"], "east");
  EXPECT_EQ(base64_decode(body["labels"].get<std::string>()).value(), "env: prod\n");
  const auto config = Json::parse(base64_decode(body["kubeConfig"].get<std::string>()).value());
  EXPECT_EQ(config["users"][0]["user"]["token"], kToken);
  EXPECT_EQ(config["clusters"][0]["cluster"]["server"], cluster_.url());

  // Again, by the name of the context.
  const auto again = add({"--kube-context=west", "--runtime=prod", "--skip-tls-validation", "-y"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(posts().back().body)["name"], "west");
}

TEST_F(ClusterAdd, DoesNothingWithoutYesAndForADryRun) {
  const auto asked = add({"east", "--runtime=prod"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, HasSubstr("all rights in the cluster " + cluster_.url()));
  const auto dry = add({"east", "--dry-run", "--system-namespace=ops"}, "http://127.0.0.1:1");
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(StartsWith("apiVersion: v1\nkind: ServiceAccount\n"),
                             HasSubstr("namespace: ops\n")));
  EXPECT_TRUE(cluster_.requests().empty());
  EXPECT_TRUE(posts().empty());
}

TEST_F(ClusterAdd, MistakesAreNamedBeforeAnythingIsMade) {
  const auto mistake = [&](const Words& words, int code, const std::string& says) {
    const auto result = add(words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
  };
  mistake({"East", "--runtime=prod", "--yes"}, 2, "lower-case letters");
  mistake({"--runtime=prod", "--yes"}, 2, "give the cluster a NAME");
  mistake({"east", "--runtime=prod", "--labels=env", "--yes"}, 2, "--labels is KEY=VALUE");
  mistake({"east", "--runtime=prod", "--kube-context=none", "--yes"}, 2, "none");
  mistake({"east", "--yes"}, 2, "there are several runtimes, prod, silent; --runtime chooses one");
  mistake({"east", "--runtime=nothing", "--yes"}, 4, "runtime \"nothing\" not found");
  mistake({"east", "--runtime=silent", "--yes"}, 5, "has no ingress host");
  mistake({"c1", "--runtime=prod", "--yes"}, 5, "another cluster c1, at https://10.0.0.1:2");
  EXPECT_EQ(add({"east", "--runtime=prod", "--yes"}, "http://127.0.0.1:1").exit_code, 3);
  EXPECT_TRUE(cluster_.requests().empty());
  EXPECT_TRUE(posts().empty());
}

TEST_F(ClusterAdd, AClusterThatRefusesOrIsAwayIsNamed) {
  cluster_.refuse("clusterroles/", 403, "Forbidden");
  const auto refused = add({"east", "--runtime=prod", "--yes"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, AllOf(StartsWith("gitopsctl: cluster " + cluster_.url() + ": "),
                                 HasSubstr("403"), HasSubstr("administrator of that cluster")));
  point_kubeconfig_at("http://127.0.0.1:1");
  const auto away = add({"east", "--runtime=prod", "--yes"});
  EXPECT_EQ(away.exit_code, 3);
  EXPECT_THAT(away.err, AllOf(StartsWith("gitopsctl: cluster http://127.0.0.1:1: "),
                              HasSubstr("--kube-context choose")));
  EXPECT_TRUE(posts().empty());
}

TEST_F(ClusterAdd, ARoleThatOthersHaveSetIsKept) {
  cluster_.refuse("clusterroles/", 409, "Conflict", "FieldManagerConflict");
  const auto result = add({"east", "--runtime=prod", "--yes"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("argocd-manager-role has rules that others have set"));
  cluster_.refuse("clusterrolebindings/", 409, "Conflict", "FieldManagerConflict");
  EXPECT_EQ(add({"east", "--runtime=prod", "--yes"}).exit_code, 5);
}

TEST_F(ClusterAdd, ARuntimeThatRefusesOrIsLostIsToldApart) {
  bed().answer_with("409 Conflict", kJson,
                    R"({"statusCode":409,"message":"a Git source is called east"})");
  const auto taken = add({"east", "--runtime=prod", "--yes"});
  EXPECT_EQ(taken.exit_code, 5);
  EXPECT_THAT(taken.err,
              AllOf(StartsWith("Refused (Conflict): a Git source is called east."),
                    HasSubstr("ServiceAccount kube-system/argocd-manager in the cluster stays")));
  bed().answer_with("", "", "");
  const auto lost = add({"east", "--runtime=prod", "--yes"});
  EXPECT_EQ(lost.exit_code, 3);
  EXPECT_THAT(lost.err, StartsWith("Unknown ("));
}

}  // namespace
}  // namespace gitops::test
