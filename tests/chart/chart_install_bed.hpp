#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "peers/peer_cluster.hpp"
#include "support/wait.hpp"

// A cluster for the whole suite and a namespace for each test, with helm and kubectl.
namespace gitops::test {

inline constexpr auto kTimeLimit = std::chrono::seconds(60);

class ChartInstallTest : public testing::Test {
 protected:
  static std::filesystem::path application_crd() {
    return peers_folder() / "share" / "argo-cd" / "application-crd.yaml";
  }

  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    if (auto lacking = PeerCluster::missing()) return lacking;
    if (!std::filesystem::exists(application_crd()))
      return "argo-cd is not built; ./dev peers builds it";
    return std::nullopt;
  }

  static void SetUpTestSuite() {
    if (missing()) return;
    cluster_ = std::make_unique<PeerCluster>();
    cluster_->apply(read_file(application_crd()));
    const auto served = [] {
      return cluster_->request("GET", "/apis/argoproj.io/v1alpha1/applications").status == 200;
    };
    require_until(served, std::chrono::seconds(30), "Applications to be served");
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (const auto lacking = missing()) GTEST_SKIP() << "peers: " << *lacking;
    ns_ = make_namespace();
  }

  // A namespace that admits only restricted pods.
  static std::string make_namespace() {
    static int number = 0;
    const auto name = "chart-" + std::to_string(++number);
    cluster_->create_namespace(name, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                      {"pod-security.kubernetes.io/warn", "restricted"}});
    for (const auto* secret : {"codefresh-token", "argocd-token"}) {
      cluster_->kubectl_ok(
          {"-n", name, "create", "secret", "generic", secret, "--from-literal=token=x"});
    }
    return name;
  }

  // helm install or upgrade of release rt with the minimal values and `values`.
  CommandResult helm(const std::string& verb, const std::string& ns,
                     std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{
        verb, "rt", chart_folder(), "-n", ns, "--wait=false", "-f", values_file("minimal.yaml")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return helm_.run(arguments, cluster_->kubeconfig());
  }

  static nlohmann::json get(const std::string& ns, const std::string& kind,
                            const std::string& name) {
    return nlohmann::json::parse(cluster_->kubectl_ok({"-n", ns, "get", kind, name, "-o", "json"}));
  }

  // Waits until this many pods of the set are ready and of its newest revision.
  static bool ready(const std::string& ns, int pods,
                    const std::string& name = "runtime-event-reporter") {
    return wait_until(
        [&] {
          const auto set = get(ns, "statefulset", name);
          const auto& status = set.at("status");
          return status.value("observedGeneration", 0) ==
                     set.at("/metadata/generation"_json_pointer) &&
                 status.value("readyReplicas", 0) == pods &&
                 status.value("updatedReplicas", 0) == pods && status.value("replicas", 0) == pods;
        },
        kTimeLimit, std::to_string(pods) + " ready pods in " + ns, std::chrono::milliseconds(200));
  }

  static std::set<std::string> lines(const std::string& text) {
    std::istringstream stream(text);
    std::set<std::string> all;
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) all.insert(line);
    }
    return all;
  }

  // Every object of the namespace but events, and the cluster's roles and their bindings.
  static std::set<std::string> everything(const std::string& ns) {
    static const auto kinds = [] {
      std::string joined;
      for (const auto& kind : lines(cluster_->kubectl_ok(
               {"api-resources", "--namespaced", "--verbs=list", "-o", "name"}))) {
        if (!kind.starts_with("events")) joined += (joined.empty() ? "" : ",") + kind;
      }
      return joined;
    }();
    auto all =
        lines(cluster_->kubectl_ok({"-n", ns, "get", kinds, "-o", "name", "--ignore-not-found"}));
    all.merge(
        lines(cluster_->kubectl_ok({"get", "clusterroles,clusterrolebindings", "-o", "name"})));
    return all;
  }

  // What the account may do in a namespace, one line per verb and resource: "get
  // secrets/argocd-token".
  static std::set<std::string> permissions(const std::string& account_ns,
                                           const std::string& account, const std::string& in_ns) {
    const auto token = cluster_->service_account_token(account_ns, account);
    const auto kubeconfig = cluster_->write_kubeconfig(account_ns + "-" + account, token);
    const nlohmann::json review{{"apiVersion", "authorization.k8s.io/v1"},
                                {"kind", "SelfSubjectRulesReview"},
                                {"spec", {{"namespace", in_ns}}}};
    const auto answer =
        nlohmann::json::parse(run_or_throw({Helm::program("kubectl"), "--kubeconfig", kubeconfig,
                                            "create", "--validate=false", "-o", "json", "-f", "-"},
                                           {}, review.dump()));
    std::set<std::string> all;
    for (const auto& rule : answer.at("/status/resourceRules"_json_pointer)) {
      for (const auto& verb : rule.at("verbs")) {
        for (const auto& resource : rule.at("resources")) {
          const std::string group = rule.at("apiGroups").at(0);
          for (const auto& name : rule.value("resourceNames", nlohmann::json::array({""}))) {
            all.insert(verb.get<std::string>() + " " + resource.get<std::string>() +
                       (group.empty() ? "" : "." + group) +
                       (name == "" ? "" : "/" + name.get<std::string>()));
          }
        }
      }
    }
    return all;
  }

  // The permissions of a reporter's account without those of every account.
  static std::set<std::string> granted(const std::string& account_ns, const std::string& in_ns,
                                       const std::string& account = "runtime-event-reporter") {
    const auto own = permissions(account_ns, account, in_ns);
    const auto anyone = permissions(account_ns, "default", in_ns);
    EXPECT_THAT(own, testing::IsSupersetOf(anyone));
    std::set<std::string> difference;
    std::ranges::set_difference(own, anyone, std::inserter(difference, difference.end()));
    return difference;
  }

  // The API server's authorizer follows Roles and their bindings by a watch: a new right takes a moment.
  template <typename Matcher>
  void expect_granted(const std::string& in_ns, const Matcher& expected,
                      const std::string& account = "runtime-event-reporter") const {
    const testing::Matcher<const std::set<std::string>&> matcher(expected);
    std::set<std::string> seen;
    wait_until(
        [&] {
          seen = granted(ns_, in_ns, account);
          return matcher.Matches(seen);
        },
        kTimeLimit, "the rights of " + account, std::chrono::milliseconds(200));
    EXPECT_THAT(seen, matcher);
  }

  bool may(const std::vector<std::string>& what) const {
    std::vector<std::string> arguments{
        "auth", "can-i",   "-n",
        ns_,    "--quiet", "--as=system:serviceaccount:" + ns_ + ":runtime-event-reporter"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    return cluster_->kubectl(arguments).exit_code == 0;
  }

  inline static std::unique_ptr<PeerCluster> cluster_;
  Helm helm_;
  std::string ns_;
};

}  // namespace gitops::test
