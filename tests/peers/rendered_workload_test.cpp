#include "peers/rendered_workload.hpp"

#include <stdexcept>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peers/peer_bed.hpp"

// What a kubelet would make of these objects.
namespace gitops::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

// A StatefulSet with one container; `container` and `volumes` are members in flow style.
std::string stateful_set(const std::string& name, const std::string& container,
                         const std::string& volumes = "[]") {
  return "apiVersion: apps/v1\n"
         "kind: StatefulSet\n"
         "metadata: {name: " +
         name +
         "}\n"
         "spec:\n"
         "  serviceName: " +
         name + "\n  selector: {matchLabels: {app.example/name: " + name +
         "}}\n"
         "  template:\n"
         "    metadata: {labels: {app.example/name: " +
         name + "}}\n    spec:\n      containers: [{name: main, image: example/x, " + container +
         "}]\n      volumes: " + volumes + "\n";
}

class RenderedWorkloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GITOPS_REQUIRE_PEERS();
    if (cluster().kubectl({"get", "namespace", kNamespace}).ok()) return;
    cluster().create_namespace(kNamespace);
    apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
        "data: {A: one, B: two}\nbinaryData: {bytes: AAEC}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n"
        "stringData: {password: hunter2, user: dana}\n");
  }
  static PeerCluster& cluster() { return peer_bed().cluster(); }
  static void apply(const std::string& documents) {
    cluster().kubectl_ok(
        {"-n", kNamespace, "apply", "--server-side", "--force-conflicts", "--filename", "-"},
        documents);
  }
  static constexpr const char* kNamespace = "rendered";
};

TEST_F(RenderedWorkloadTest, ResolvesTheEnvironment) {
  apply(stateful_set("env",
                     "command: [/bin/x, '--pod=$(POD)'], args: ['$$(POD)', '$(NOBODY)', plain], "
                     "envFrom: [{configMapRef: {name: settings}, prefix: C_}, "
                     "{secretRef: {name: credentials}}, "
                     "{configMapRef: {name: nothing, optional: true}}], "
                     "env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, "
                     "{name: LABEL, valueFrom: {fieldRef: "
                     "{fieldPath: \"metadata.labels['app.example/name']\"}}}, "
                     "{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, "
                     "{name: B, valueFrom: {configMapKeyRef: {name: settings, key: B}}}, "
                     "{name: PASS, valueFrom: {secretKeyRef: {name: credentials, key: password}}}, "
                     "{name: NO_KEY, valueFrom: "
                     "{secretKeyRef: {name: credentials, key: none, optional: true}}}, "
                     "{name: NO_MAP, valueFrom: "
                     "{configMapKeyRef: {name: nothing, key: none, optional: true}}}, "
                     "{name: user, value: the entry wins}, "
                     "{name: JOINED, value: '$(POD)/$(C_A)$(LATER)'}, {name: LATER, value: x}]"));
  const RenderedWorkload workload(cluster(), kNamespace, "env");
  EXPECT_THAT(workload.argv(),
              ElementsAre("/bin/x", "--pod=env-0", "$(POD)", "$(NOBODY)", "plain"));
  auto environment = workload.environment();
  EXPECT_EQ(environment.erase("KUBECONFIG"), 1U);
  EXPECT_THAT(
      environment,
      UnorderedElementsAre(
          Pair("C_A", "one"), Pair("C_B", "two"), Pair("C_bytes", std::string("\0\1\2", 3)),
          Pair("password", "hunter2"), Pair("user", "the entry wins"), Pair("POD", "env-0"),
          Pair("LABEL", "env"), Pair("NODE", std::string(PeerCluster::kNodeName)), Pair("B", "two"),
          Pair("PASS", "hunter2"), Pair("JOINED", "env-0/one$(LATER)"), Pair("LATER", "x")));
  const auto all = workload.process_environment();
  EXPECT_EQ(all.at("PATH"), std::nullopt);
  EXPECT_EQ(all.at("POD"), "env-0");
}

TEST_F(RenderedWorkloadTest, WritesTheFilesOfTheMounts) {
  apply(stateful_set(
      "files",
      "command: [x, /etc/settings/deep/b, /etc/settings-not], "
      "env: [{name: FILE, value: /etc/all/user}], "
      "volumeMounts: [{name: settings, mountPath: /etc/settings}, "
      "{name: all, mountPath: /etc/all}, {name: all, mountPath: /etc/one, subPath: user}, "
      "{name: scratch, mountPath: /tmp}]",
      "[{name: settings, configMap: {name: settings, items: [{key: B, path: deep/b}]}}, "
      "{name: all, projected: {sources: [{secret: {name: credentials}}, "
      "{configMap: {name: settings, items: [{key: bytes, path: bytes}]}}, "
      "{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}, "
      "{configMap: {name: nothing, optional: true}}]}}, "
      "{name: scratch, emptyDir: {}}]"));
  const RenderedWorkload workload(cluster(), kNamespace, "files");
  EXPECT_EQ(read_file(workload.local("/etc/settings/deep/b")), "two");
  EXPECT_FALSE(std::filesystem::exists(workload.local("/etc/settings/A")));
  EXPECT_EQ(read_file(workload.local("/etc/all/password")), "hunter2");
  EXPECT_EQ(read_file(workload.local("/etc/all/bytes")), std::string("\0\1\2", 3));
  EXPECT_EQ(read_file(workload.local("/etc/all/name")), "files-0");
  EXPECT_EQ(read_file(workload.local("/etc/one")), "dana");
  EXPECT_TRUE(std::filesystem::is_empty(workload.local("/tmp")));
  EXPECT_THAT(workload.argv(), ElementsAre("x", workload.local("/etc/settings/deep/b").string(),
                                           "/etc/settings-not"));
  EXPECT_EQ(workload.environment().at("FILE"), workload.local("/etc/all/user").string());
  EXPECT_THROW(std::ignore = workload.local("/etc"), std::runtime_error);

  // The service account's mount, which nobody asked for, makes the kubeconfig.
  const auto whoami = run_or_throw({(peers_folder() / "bin" / "kubectl").string(), "--kubeconfig",
                                    workload.kubeconfig().string(), "auth", "whoami"});
  EXPECT_THAT(whoami, HasSubstr("system:serviceaccount:rendered:default"));
  EXPECT_THAT(whoami, HasSubstr("files-0"));  // the token is bound to the pod
}

TEST_F(RenderedWorkloadTest, FollowsADeploymentAndItsConfigMaps) {
  apply(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: changing}\n"
      "data: {path: 'file: /etc/one/credentials/user!', gone: x}\n---\n"
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: server}\nspec:\n"
      "  selector: {matchLabels: {app.example/name: server}}\n"
      "  template:\n    metadata: {labels: {app.example/name: server}}\n    spec:\n"
      "      containers: [{name: main, image: example/x, command: [x], volumeMounts: ["
      "{name: changing, mountPath: /etc/changing}, "
      "{name: changing, mountPath: /etc/single, subPath: gone}, "
      "{name: one, mountPath: /etc/one/credentials}]}]\n"
      "      volumes: [{name: changing, configMap: {name: changing}}, "
      "{name: one, secret: {secretName: credentials}}]\n");
  RenderedWorkload workload(cluster(), kNamespace, RenderedWorkload::Deployment{"server"});
  const auto user = workload.local("/etc/one/credentials/user");
  EXPECT_EQ(read_file(user), "dana");
  const auto path = workload.local("/etc/changing/path");
  EXPECT_EQ(read_file(path), "file: " + user.string() + "!");

  apply(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: changing}\ndata: {path: new, more: "
      "other}\n");
  EXPECT_EQ(read_file(path), "file: " + user.string() + "!") << "not before the kubelet looked";
  workload.update_volumes();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(read_file(workload.local("/etc/changing/more")), "other");
  EXPECT_FALSE(std::filesystem::exists(workload.local("/etc/changing/gone")));
  EXPECT_EQ(read_file(workload.local("/etc/single")), "x") << "by subPath nothing arrives";
}

TEST_F(RenderedWorkloadTest, RefusesWhatAKubeletWouldNotStart) {
  apply(stateful_set("broken",
                     "command: [x], env: [{name: A, valueFrom: "
                     "{secretKeyRef: {name: nothing, key: token}}}]"));
  EXPECT_THAT([] { RenderedWorkload(cluster(), kNamespace, "broken"); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("CreateContainerConfigError"), HasSubstr("nothing"))));
}

}  // namespace
}  // namespace gitops::test
