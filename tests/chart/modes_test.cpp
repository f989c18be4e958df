// The chart in every way in which it can be installed: access modes, Argo CDs and surroundings, each
// combination rendered and checked for what must hold in all of them.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "chart/helm.hpp"
#include "chart/known_fields.hpp"
#include "chart/stub_charts.hpp"
#include "chart/value_sets.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

bool has(const std::vector<json>& objects, std::string_view kind, std::string_view name) {
  return std::ranges::any_of(objects, [&](const json& one) {
    return one.at("kind") == kind && one.at("/metadata/name"_json_pointer) == name;
  });
}

// The pods that objects make, and the pod of helm test.
std::vector<json> pod_specs(const std::vector<json>& objects) {
  std::vector<json> pods;
  for (const auto& one : objects) {
    if (one.contains("/spec/template/spec"_json_pointer)) {
      pods.push_back(one.at("/spec/template/spec"_json_pointer));
    } else if (one.at("kind") == "Pod") {
      pods.push_back(one.at("spec"));
    }
  }
  return pods;
}

class ChartModes : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  }

  std::vector<json> render(const std::vector<json>& layers,
                           const std::vector<std::string>& more = {}) {
    auto values = least_values();
    for (const auto& layer : layers) values = merged(values, layer);
    write_file(folder_ / "values.json", values.dump());
    std::vector<std::string> arguments{"-f", folder_ / "values.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return helm_.render(arguments);
  }

  TempDir folder_;
  Helm helm_;
};

void expect_every_object_is_in_its_place(const std::vector<json>& objects) {
  std::set<std::string> seen;
  for (const auto& one : objects) {
    const std::string kind = one.at("kind");
    const auto& metadata = one.at("metadata");
    EXPECT_TRUE(seen.insert(kind + "/" + metadata.at("name").get<std::string>()).second) << kind;
    if (kind.starts_with("ClusterRole")) {
      EXPECT_FALSE(metadata.contains("namespace")) << kind;
    } else {
      EXPECT_EQ(metadata.value("namespace", ""), "gitops") << kind << " " << metadata.at("name");
    }
    EXPECT_EQ(metadata.at("labels").at("app.kubernetes.io/part-of"), "gitops-runtime");
  }
}

void expect_access(const std::vector<json>& objects, const Choice& access) {
  const auto& name = access.name;
  EXPECT_EQ(has(objects, "Ingress", "codefresh-gitops-runtime"), name == "ingress");
  EXPECT_EQ(has(objects, "HTTPRoute", "codefresh-gitops-runtime"), name == "httpRoute");
  EXPECT_EQ(has(objects, "Deployment", "codefresh-tunnel-client"), name == "tunnel");
  const auto& data = object(objects, "ConfigMap", "codefresh-cm").at("data");
  EXPECT_EQ(data.value("ingressHost", ""), access.expected);
  EXPECT_EQ(data.at("components").get<std::string>().contains("codefresh-tunnel-client"),
            name == "tunnel");
}

void expect_argo_cd(const std::vector<json>& objects, const Choice& argo_cd) {
  const auto& config = object(objects, "ConfigMap", "runtime-event-reporter-cmd-params-cm");
  EXPECT_EQ(config.at("/data/argocd.server"_json_pointer), argo_cd.expected);
  const auto& set = object(objects, "StatefulSet", "runtime-event-reporter");
  const auto volumes = set.at("/spec/template/spec/volumes"_json_pointer).dump();
  EXPECT_EQ(volumes.contains("argocd-secret"), argo_cd.name == "stock") << volumes;
  EXPECT_EQ(volumes.contains("\"initial\""), argo_cd.name == "elsewhere") << volumes;
  // A token is read through the API, and so needs a right; a password is mounted.
  const auto& role = object(objects, "Role", "runtime-event-reporter");
  EXPECT_EQ(role.dump().contains("argocd-token"), argo_cd.name != "elsewhere");
}

void expect_surroundings(const std::vector<json>& objects, const std::string& name) {
  const bool cluster_roles = std::ranges::any_of(objects, [](const json& one) {
    return one.at("kind").get<std::string>().starts_with("ClusterRole");
  });
  EXPECT_EQ(cluster_roles, name != "singleNamespace");
  const auto reporter = object(objects, "StatefulSet", "runtime-event-reporter").dump();
  if (name == "onPremises") {
    EXPECT_THAT(reporter, HasSubstr("/app/config/codefresh-tls-certs/ca.pem"));
    EXPECT_THAT(reporter, HasSubstr("$(KUBERNETES_SERVICE_HOST)"));
    EXPECT_THAT(reporter, HasSubstr(".corp.example.com,localhost"));
    EXPECT_THAT(object(objects, "Deployment", "cap-app-proxy").dump(), HasSubstr("NO_PROXY"));
    EXPECT_EQ(object(objects, "ConfigMap", "cap-app-proxy-cm").at("/data/cors"_json_pointer),
              "https://gitops.corp.example.com:8443");
  } else {
    EXPECT_THAT(reporter, Not(HasSubstr("PROXY")));
  }
  for (const auto& pod : pod_specs(objects)) {
    const std::string image = pod.at("/containers/0/image"_json_pointer);
    if (name == "privateRegistry") {
      EXPECT_EQ(image, "registry.example.com:5000/team/gitops-runtime:1.2.3");
      EXPECT_EQ(pod.at("imagePullSecrets"), json({{{"name", "pull"}}}));
      EXPECT_EQ(pod.at("priorityClassName"), "high");
    } else {
      EXPECT_EQ(image, "gitops-runtime:0.1.0");
    }
    EXPECT_EQ(pod.at("containers").size(), 1U);
    EXPECT_EQ(pod.at("/securityContext/runAsNonRoot"_json_pointer), true);
    EXPECT_EQ(pod.at("/containers/0/securityContext/readOnlyRootFilesystem"_json_pointer), true);
  }
  for (const auto& one : objects) {
    if (name == "privateRegistry") {
      EXPECT_EQ(one.at("/metadata/labels/team"_json_pointer), "x") << one.at("kind");
    }
  }
  const auto workloads = std::ranges::count_if(objects, [](const json& one) {
    return one.at("kind") == "Deployment" || one.at("kind") == "StatefulSet";
  });
  const auto policies = std::ranges::count_if(
      objects, [](const json& one) { return one.at("kind") == "NetworkPolicy"; });
  EXPECT_EQ(policies, name == "privateRegistry" ? workloads : 0);
}

TEST_F(ChartModes, RenderInEveryCombination) {
  int sets = 0;
  for (const auto& access : access_modes()) {
    for (const auto& argo_cd : argo_cds()) {
      for (const auto& around : surroundings()) {
        SCOPED_TRACE(access.name + ", " + argo_cd.name + ", " + around.name);
        ++sets;
        const auto objects = render({access.values, argo_cd.values, around.values});
        expect_every_object_is_in_its_place(objects);
        expect_access(objects, access);
        expect_argo_cd(objects, argo_cd);
        expect_surroundings(objects, around.name);
      }
    }
  }
  EXPECT_EQ(sets, 75);
}

// The versions at both ends of what the chart supports: kubeVersion in Chart.yaml, and the newest release.
struct Version {
  const char* peer;
  const char* version;
};

// Read once.
const KnownFields& fields_of(const std::string& peer) {
  static std::map<std::string, KnownFields> all;
  return all.try_emplace(peer, peer).first->second;
}

class ChartInVersions : public ChartModes, public testing::WithParamInterface<Version> {};

TEST_P(ChartInVersions, RendersOnlyKindsAndFieldsThatKubernetesKnows) {
  const auto& [peer, version] = GetParam();
  if (const auto lacking = KnownFields::missing(peer)) GTEST_SKIP() << "peers: " << *lacking;
  const KnownFields& fields = fields_of(peer);
  int checked = 0;
  const auto check = [&](const std::vector<json>& layers) {
    for (const auto& one : render(layers, {"--kube-version", version})) {
      if (!KnownFields::covers(one)) continue;
      ++checked;
      EXPECT_THAT(fields.mistakes(one), testing::IsEmpty());
    }
  };
  for (const auto& access : access_modes()) {
    for (const auto& argo_cd : argo_cds()) {
      for (const auto& around : surroundings()) {
        check({access.values, argo_cd.values, around.values});
      }
    }
  }
  check({{{"tunnel-server",
           {{"enabled", true},
            {"subdomainHost", "tunnels.example.com"},
            {"auth", {{"token", {{"secretKeyRef", {{"name", "t"}, {"key", "t"}}}}}}},
            {"users", {{"ingress", {{"enabled", true}}}}}}},
          {"app-proxy",
           {{"enabled", true},
            {"actions", {{"enabled", true}}},
            {"image-enrichment", {{"enabled", true}}}}}}});
  EXPECT_GE(checked, 2000);
}

TEST_P(ChartInVersions, FindsWhatKubernetesDoesNotKnow) {
  const auto& [peer, version] = GetParam();
  if (const auto lacking = KnownFields::missing(peer)) GTEST_SKIP() << "peers: " << *lacking;
  const KnownFields& fields = fields_of(peer);
  const auto mistakes = [&](const char* api, const char* kind, json more) {
    more["apiVersion"] = api;
    more["kind"] = kind;
    return fields.mistakes(more);
  };
  using testing::ElementsAre;
  EXPECT_THAT(mistakes("batch/v1beta1", "CronJobs", {}),
              ElementsAre("no kind CronJobs in batch/v1beta1"));
  EXPECT_THAT(mistakes("v1", "Service", {{"spec", {{"ports", {{{"prot", "TCP"}}}}}}}),
              ElementsAre("Service.spec.ports[0].prot is not known"));
  EXPECT_THAT(mistakes("apps/v1", "Deployment", {{"spec", {{"replicas", "2"}}}}),
              ElementsAre("Deployment.spec.replicas is no numeric: \"2\""));
  // Of Kubernetes 1.26 and later.
  const auto eviction = mistakes("policy/v1", "PodDisruptionBudget",
                                 {{"spec", {{"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}});
  EXPECT_EQ(eviction.empty(), std::string_view(peer) == "kubernetes-newest");
}

INSTANTIATE_TEST_SUITE_P(Kubernetes, ChartInVersions,
                         testing::Values(Version{"kubernetes-oldest", "v1.25.0"},
                                         Version{"kubernetes-newest", "v1.37.0"}),
                         [](const auto& info) {
                           return std::string(info.param.peer).substr(sizeof("kubernetes"));
                         });

TEST_F(ChartModes, AC45_InstallNoCacheAndNothingOfArgo) {
  for (const auto& one : render({})) {
    const auto text = one.dump();
    EXPECT_THAT(text, Not(HasSubstr("redis"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("argoproj/argocd"))) << text;
  }
}

TEST_F(ChartModes, ArePackedWithAndWithoutArgo) {
  const auto parts = stub_charts();
  for (const auto& part : parts) pack(helm_, part, folder_.path());
  const auto out = folder_ / "out";
  const std::vector<std::string> command{
      "python3",      fs::path(GITOPS_SOURCE_DIR) / "charts/package.py",
      "--helm",       Helm::program("helm"),
      "--out",        out,
      "--repository", folder_.path()};
  const auto made = run_command(command);
  ASSERT_TRUE(made.ok()) << made.err;

  const auto render_package = [&](const std::string& package,
                                  const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"template", "rt", out / (package + "-0.1.0.tgz"), "-n",
                                       "gitops",   "-f", values_file("minimal.yaml")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return helm_.run(arguments);
  };
  const std::string with = "gitops-runtime-with-argo";
  const auto plain = render_package("gitops-runtime", {});
  ASSERT_TRUE(plain.ok()) << plain.err;
  const auto off = render_package(with, {});
  ASSERT_TRUE(off.ok()) << off.err;
  for (const auto& part : parts) EXPECT_THAT(off.out, Not(HasSubstr(part.repository)));

  for (const auto& part : parts) {
    const auto& name = part.name;
    const auto enabled = name + ".enabled=true";
    const auto on = render_package(with, {"--set", enabled});
    ASSERT_TRUE(on.ok()) << on.err;
    EXPECT_THAT(on.out, HasSubstr("image: " + part.enabled_image));
    const auto refused = render_package("gitops-runtime", {"--set", enabled});
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(refused.err, HasSubstr(name + ".enabled is true, but this package"));
    EXPECT_THAT(refused.err, HasSubstr("take the package gitops-runtime-with-argo"));
  }
  const auto argo_cd = render_package(with, {"--set", "argo-cd.enabled=true", "--set",
                                             "argo-cd.configs.params.server\\.insecure=false"});
  EXPECT_THAT(argo_cd.out, HasSubstr("\"argocd.server\": \"https://argo-cd-server:443\""))
      << argo_cd.err;

  // A folder that lacks a package is an error that names it.
  const auto events = std::ranges::find(parts, "argo-events", &StubChart::name);
  ASSERT_NE(events, parts.end());
  fs::remove(folder_ / ("argo-events-" + events->version + ".tgz"));
  const auto lacking = run_command(command);
  EXPECT_FALSE(lacking.ok());
  EXPECT_THAT(lacking.err, HasSubstr("argo-events-" + events->version + ".tgz"));
}

}  // namespace
}  // namespace gitops::test
