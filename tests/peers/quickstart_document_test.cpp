// The commands of docs/get-started/quickstart.md as they are written there: run by a shell, with the real kubectl and helm, against
// a real API server and Argo CD.
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "peers/quickstart_document_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;

constexpr const char* kPage = "docs/get-started/quickstart.md";
constexpr const char* kExampleRepository =
    "https://github.com/argoproj/argocd-example-apps.git\", path: guestbook";

std::string config_map(const std::string& color) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: " + color +
         "}\n";
}

TEST_F(QuickstartDocument, EndsWithACommitOnThePage) {
  const auto steps = blocks(kPage, "sh");
  const auto forwards = blocks(kPage, "console");
  ASSERT_EQ(steps.size(), 5U);
  ASSERT_EQ(forwards.size(), 1U);

  // 1. The control plane, whose log has the password.
  ASSERT_NO_FATAL_FAILURE(run(steps[0]));
  start_control_plane();
  const auto shown = shell(steps[1]).out;
  ASSERT_THAT(shown, HasSubstr("First administrator: admin\n"));
  const std::string label = "Password (shown once): ";
  ASSERT_THAT(shown, HasSubstr(label));
  const auto password = shown.substr(shown.find(label) + label.size());
  // Pods here have no ports to forward, but the Service has the one that the page names.
  EXPECT_THAT(forwards[0], HasSubstr("service/control-plane 8080:80\n"));
  EXPECT_EQ(cluster().kubectl_ok({"-n", kPlaneNamespace, "get", "service", "control-plane", "-o",
                                  "jsonpath={.spec.ports[0].port}"}),
            "80");

  // 2. The runtime.
  key_ = create_token("admin", password.substr(0, password.find('\n')));
  write_file(here_ / "user-token", key_);
  ASSERT_NO_FATAL_FAILURE(run(steps[2]));
  ASSERT_THAT(steps[3], HasSubstr(kPlaneInCluster));
  ASSERT_NO_FATAL_FAILURE(run(steps[3]));
  start(pod_of("cap-app-proxy", kNamespace), {{"ARGO_CD_URL", argocd().url()}});
  ASSERT_TRUE(wait_until(
      [&] {
        return cluster().kubectl({"-n", kNamespace, "get", "secret", "codefresh-token"}).ok();
      },
      kTimeLimit, "the runtime to register itself", std::chrono::milliseconds(200)));
  EXPECT_EQ(ask(R"({runtime(name: "my-runtime") {metadata {namespace}}})")["metadata"]["namespace"],
            kNamespace);
  start(pod_of_set("runtime-event-reporter", kNamespace), {{"ARGOCD_SERVER", argocd().url()}});

  // 3. The application, of a repository that can be reached here.
  auto& git = peer_bed().git();
  const auto url = git.create_repository("guestbook");
  git.commit("guestbook", {{"settings.yaml", config_map("blue")}}, "blue is the color");
  argocd().add_repository(git, "guestbook");
  auto application = steps[4];
  const auto at = application.find(kExampleRepository);
  ASSERT_NE(at, std::string::npos);
  application.replace(at, std::string(kExampleRepository).size(), url + "\", path: .");
  ASSERT_NO_FATAL_FAILURE(run(application));
  ASSERT_TRUE(shows("blue is the color"));
  git.commit("guestbook", {{"settings.yaml", config_map("green")}}, "green is better");
  EXPECT_TRUE(shows("green is better"));

  for (auto& [name, process] : pods_) {
    EXPECT_EQ(process.stop(std::chrono::seconds(20)), 0) << name;
  }
}

}  // namespace
}  // namespace gitops::test
