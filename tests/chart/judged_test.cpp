// The chart as those judge it who will: a real API server takes every object of every set of
// values, and what the pods need is there, as a kubelet would look for it.

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "chart/needs.hpp"
#include "chart/stub_charts.hpp"
#include "chart/value_sets.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/rendered_workload.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace nlohmann::literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr const char* kMonitoring = "monitoring.coreos.com/v1";

// Images that ./dev image makes, as the sets of values name them, and those of pipelines.
std::set<std::string> images_that_exist() {
  std::set<std::string> all;
  for (const std::string registry :
       {"", "registry.example.com/team/", "registry.example.com:5000/team/"}) {
    for (const std::string name : {"gitops-runtime", "event-reporter", "request-router",
                                   "tunnel-client", "tunnel-server", "app-proxy"}) {
      for (const std::string tag : {"0.1.0", "1.2.3"}) all.insert(registry + name + ":" + tag);
    }
  }
  return all;
}

// What is in the cluster besides: Secrets that the documents tell people to make, and those that
// the sets of values name.
Given given() {
  return {
      .images = images_that_exist(),
      .secrets = {"ca/ca.pem", "git/password", "git/pw", "internal-router-webhook-secrets/github",
                  "runtimes/list", "runtimes/token", "proxy/url", "signing/ssh-privatekey", "t/t",
                  "tunnel-ca/ca.pem", "user-token/token"},
      .accounts = {}};
}

TEST(ChartNeeds, AreFoundWhereTheyAreNotMet) {
  const json pod{
      {"containers",
       {{{"name", "c"},
         {"image", "nowhere:1"},
         {"volumeMounts", {{{"name", "gone"}, {"mountPath", "/x"}}}},
         {"env",
          {{{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "absent"}}}}}},
           {{"name", "A"}, {"value", "1"}}}},
         {"livenessProbe", {{"httpGet", {{"port", "absent"}}}}}}}},
      {"volumes",
       {{{"name", "v"}, {"secret", {{"secretName", nullptr}}}},
        {{"name", "twice"},
         {"projected",
          {{"sources",
            {{{"secret", {{"name", "s"}, {"items", {{{"key", "k"}, {"path", "p"}}}}}}},
             {{"secret", {{"name", "s"}, {"items", {{{"key", "k"}, {"path", "p"}}}}}}}}}}}}}}};
  const std::vector<json> objects{
      {{"kind", "Secret"}, {"metadata", {{"name", "s"}}}, {"stringData", {{"k", "v"}}}},
      {{"kind", "Deployment"},
       {"metadata", {{"name", "d"}}},
       {"spec", {{"template", {{"metadata", {{"labels", {{"a", "b"}}}}}, {"spec", pod}}}}}},
      {{"kind", "Service"},
       {"metadata", {{"name", "d"}}},
       {"spec",
        {{"selector", {{"a", "b"}}}, {"ports", {{{"port", 80}, {"targetPort", "http"}}}}}}}};
  const auto found = unmet_needs(objects, {});
  EXPECT_THAT(found, Contains(HasSubstr("there is no image nowhere:1")));
  EXPECT_THAT(found, Contains(HasSubstr("there is no volume \"gone\"")));
  EXPECT_THAT(found, Contains(HasSubstr("there is no key s/absent of a Secret")));
  EXPECT_THAT(found, Contains(HasSubstr("the variable \"A\" stands there twice")));
  EXPECT_THAT(found, Contains(HasSubstr("the livenessProbe names no port")));
  EXPECT_THAT(found, Contains(HasSubstr("a volume names no Secret")));
  EXPECT_THAT(found, Contains(HasSubstr("two sources of a volume write \"p\"")));
  EXPECT_THAT(found, Contains(HasSubstr("no pod behind it has the port \"http\"")));
}

TEST(YamlManifests, HaveNoKeyTwice) {
  const auto twice = parse_manifests("a: 1\nb: {c: 1, \"c\": 2}\n");
  ASSERT_FALSE(twice.has_value());
  EXPECT_THAT(twice.error().message, HasSubstr("the key c stands there twice"));
}

class JudgedChart : public testing::Test {
 protected:
  static std::optional<std::string> missing() { return Helm::missing(); }
  void SetUp() override {
    if (const auto lacking = missing()) GTEST_SKIP() << "peers: " << *lacking;
  }

  std::vector<std::string> with(const json& values, std::vector<std::string> more = {}) {
    write_file(folder_ / "values.json", values.dump());
    more.insert(more.begin(), {"-f", folder_ / "values.json"});
    return more;
  }
  std::vector<json> render(const json& values) {
    return helm_.render(with(values, {"--api-versions", kMonitoring}));
  }
  // The chart with an empty values.yaml.
  fs::path without_values() {
    const auto chart = folder_ / "without/gitops-runtime";
    if (!fs::exists(chart)) {
      fs::create_directories(chart.parent_path());
      fs::copy(chart_folder(), chart, fs::copy_options::recursive);
      write_file(chart / "values.yaml", "{}\n");
    }
    return chart;
  }

  TempDir folder_;
  Helm helm_;
};

TEST_F(JudgedChart, EveryPodHasWhatItNeeds) {
  int sets = 0;
  for (const auto& [name, values] : value_sets()) {
    SCOPED_TRACE(name);
    ++sets;
    EXPECT_THAT(unmet_needs(render(values), given()), IsEmpty());
  }
  EXPECT_GE(sets, 100);
}

TEST_F(JudgedChart, ExamplesOfTheOlderChartRender) {
  const auto examples = older_examples();
  EXPECT_EQ(examples.size(), 15U);
  for (const auto& [name, values] : examples) {
    auto everything = values;
    everything["app-proxy"]["enabled"] = true;
    for (const auto& one : {values, everything}) {
      const auto rendered = helm_.run([&] {
        auto arguments = with(one);
        arguments.insert(arguments.begin(), {"template", "rt", chart_folder(), "-n", "gitops"});
        return arguments;
      }());
      EXPECT_TRUE(rendered.ok()) << name << ": " << rendered.err;
    }
  }
}

// Every key that a release of the older chart has, with the value that it has there by default.
TEST_F(JudgedChart, TakesEveryKeyOfEveryOlderRelease) {
  const auto rows =
      json::parse(read_file(fs::path(GITOPS_SOURCE_DIR) / "tests/chart/older_keys.json"));
  ASSERT_GE(rows.size(), 290U);
  for (int release = 2; release <= 30; ++release) {
    SCOPED_TRACE("0." + std::to_string(release));
    json values = json::object();
    for (const auto& row : rows) {
      if (row.at(0) > release || row.at(1) < release) continue;
      json* node = &values;
      std::istringstream steps(row.at(2).get<std::string>());
      for (std::string step; std::getline(steps, step, '/');) {
        if (!node->is_object()) *node = json::object();
        node = &(*node)[step];
      }
      *node = row.at(3);
    }
    values = merged(values, least_values());
    for (const bool app_proxy : {false, true}) {
      values["app-proxy"]["enabled"] = app_proxy;
      EXPECT_FALSE(render(values).empty());
    }
  }
}

// -- null for each key --

// The keys of the values, as paths: those that the schema names, but in lists and in maps of the
// user's.
void find_keys(const json& node, const std::vector<std::string>& path,
               std::vector<std::vector<std::string>>& keys) {
  if (!node.contains("properties")) return;
  for (const auto& [name, child] : node.at("properties").items()) {
    auto here = path;
    here.push_back(name);
    keys.push_back(here);
    find_keys(child, here, keys);
  }
}

void set_null(json& values, const std::vector<std::string>& path) {
  json* node = &values;
  for (const auto& name : path) {
    if (!node->is_object()) *node = json::object();
    node = &(*node)[name];
  }
  *node = nullptr;
}

bool overlaps(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const auto length = std::min(one.size(), other.size());
  return std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(length), other.begin());
}

bool has_null(const json& value) {
  if (value.is_null()) return true;
  if (!value.is_structured()) return false;
  return std::ranges::any_of(value, has_null);
}

class ChartWithNulls : public JudgedChart {
 protected:
  // What is wrong with a rendering without these keys; empty: nothing.
  std::string fault(const std::vector<std::vector<std::string>>& keys) {
    auto values = everything_at_once();
    for (const auto& key : keys) set_null(values, key);
    auto arguments = with(values, {"--api-versions", kMonitoring});
    arguments.insert(arguments.begin(), {"template", "rt", chart_folder(), "-n", "gitops"});
    const auto rendered = helm_.run(arguments);
    if (!rendered.ok()) return is_sentence(rendered.err) && keys.size() == 1 ? "" : rendered.err;
    const auto objects = parse_manifests(rendered.out);
    if (!objects) return objects.error().message;
    for (const auto& one : *objects) {
      if (has_null(one)) return "a null in " + one.dump();
    }
    const auto lacking = unmet_needs(*objects, given());
    return lacking.empty() ? "" : lacking.front();
  }
  // An error for people: the list of mistakes, or the schema's.
  static bool is_sentence(const std::string& error) {
    return error.contains("the values of gitops-runtime have") || error.contains("at '/");
  }
};

TEST_F(ChartWithNulls, RendersWithoutAnyOfItsKeys) {
  std::vector<std::vector<std::string>> keys;
  find_keys(json::parse(read_file(chart_folder() / "values.schema.json")), {}, keys);
  ASSERT_GE(keys.size(), 600U);
  // Keys that do not lie within each other are tried together; of a set that fails, each alone.
  constexpr std::size_t kTogether = 12;
  std::vector<std::string> faults;
  int renderings = 0;
  while (!keys.empty()) {
    std::vector<std::vector<std::string>> now;
    std::vector<std::vector<std::string>> later;
    for (auto& key : keys) {
      // A switch would hide what the others do.
      const bool alone = key.back() == "enabled" || key.size() == 1;
      const bool fits =
          now.empty() ||
          (!alone && now.size() < kTogether && now.front().back() != "enabled" &&
           now.front().size() > 1 &&
           std::ranges::none_of(now, [&](const auto& other) { return overlaps(key, other); }));
      (fits ? now : later).push_back(std::move(key));
    }
    keys = std::move(later);
    ++renderings;
    if (now.size() > 1 && fault(now).empty()) continue;
    for (const auto& key : now) {
      const auto wrong = fault({key});
      if (wrong.empty()) continue;
      std::string name;
      for (const auto& step : key) name += "/" + step;
      faults.push_back(name + ": " + wrong.substr(0, 300));
    }
  }
  EXPECT_THAT(faults, IsEmpty());
  EXPECT_GE(renderings, 40);
}

// A release that has none of the keys, as after an upgrade with --reuse-values from before them.
TEST_F(ChartWithNulls, RendersWithoutTheDefaultsOfItsValues) {
  for (const auto& values : {least_values(), everything_at_once()}) {
    auto arguments = with(values, {"--api-versions", kMonitoring});
    arguments.insert(arguments.begin(), {"template", "rt", without_values(), "-n", "gitops"});
    const auto rendered = helm_.run(arguments);
    ASSERT_TRUE(rendered.ok()) << rendered.err;
    const auto objects = parse_manifests(rendered.out);
    ASSERT_TRUE(objects.has_value()) << objects.error().message;
    EXPECT_THAT(unmet_needs(*objects, given()), IsEmpty());
    EXPECT_TRUE(std::ranges::none_of(*objects, has_null));
  }
}

// -- as a part of another chart --

class UmbrellaChart : public JudgedChart {
 protected:
  // A chart whose parts are ours, if gitops-runtime.enabled, and Argo CD's.
  fs::path umbrella() {
    const auto chart = folder_ / "umbrella";
    fs::create_directories(chart / "charts");
    fs::create_directories(chart / "templates");
    fs::copy(chart_folder(), chart / "charts/gitops-runtime", fs::copy_options::recursive);
    for (const auto& part : stub_charts()) {
      if (part.name != "argo-cd") continue;
      pack(helm_, part, folder_.path());
      fs::copy_file(folder_ / ("argo-cd-" + part.version + ".tgz"),
                    chart / "charts" / ("argo-cd-" + part.version + ".tgz"));
      argo_cd_ = part;
      write_file(chart / "Chart.yaml",
                 "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies:\n"
                 "  - {name: gitops-runtime, version: 0.1.0, condition: gitops-runtime.enabled,"
                 " tags: [runtimes]}\n"
                 "  - {name: argo-cd, version: " +
                     part.version + "}\n");
    }
    write_file(chart / "values.yaml", "{}\n");
    return chart;
  }
  // The values of the umbrella: its own globals beside ours.
  static json values() {
    return {{"tags", {{"runtimes", true}}},
            {"global",
             {{"domain", "gitops.example.com"},
              {"image", {{"repository", "registry.example.com/argo-cd"}, {"tag", "v3.2.11"}}}}},
            {"gitops-runtime", merged(everything_at_once(), {{"enabled", true}})},
            {"argo-cd", {{"fullnameOverride", "argocd"}}}};
  }

  StubChart argo_cd_;
};

TEST_F(UmbrellaChart, TakesGlobalsAndSwitchesOfTheOtherChart) {
  auto arguments = with(values());
  arguments.insert(arguments.begin(), {"template", "rt", umbrella(), "-n", "gitops"});
  const auto rendered = helm_.run(arguments);
  ASSERT_TRUE(rendered.ok()) << rendered.err;
  const auto objects = parse_manifests(rendered.out);
  ASSERT_TRUE(objects.has_value()) << objects.error().message;
  auto there = given();
  there.images.insert("registry.example.com/argo-cd:v3.2.11");
  EXPECT_THAT(unmet_needs(*objects, there), IsEmpty());

  auto off = values();
  off["gitops-runtime"]["enabled"] = false;
  auto without = with(off);
  without.insert(without.begin(), {"template", "rt", folder_ / "umbrella", "-n", "gitops"});
  const auto alone = helm_.run(without);
  ASSERT_TRUE(alone.ok()) << alone.err;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("argocd-server"), Not(HasSubstr("internal-router"))));
}

// -- in the package with Argo --

class PackageWithArgo : public JudgedChart {
 protected:
  fs::path package() {
    for (const auto& part : stub_charts()) pack(helm_, part, folder_.path());
    const auto made = run_package({});
    if (!made.ok()) throw std::runtime_error("package.py: " + made.err);
    return folder_ / "out/gitops-runtime-with-argo-0.1.0.tgz";
  }
  CommandResult run_package(const std::vector<std::string>& more) {
    std::vector<std::string> command{
        "python3",      fs::path(GITOPS_SOURCE_DIR) / "charts/package.py",
        "--helm",       Helm::program("helm"),
        "--out",        folder_ / "out",
        "--repository", folder_.path()};
    command.insert(command.end(), more.begin(), more.end());
    return run_command(command);
  }
  static json all_of_argo() {
    json values = everything_at_once();
    values["global"]["imagePullSecrets"] = json::array({json{{"name", "pull"}}});
    values["global"]["nodeSelector"] = {{"pool", "gitops"}};
    values["image"] = {{"registry", "registry.example.com/team"}, {"tag", "1.2.3"}};
    for (const auto& part : stub_charts()) values[part.name] = {{"enabled", true}};
    return values;
  }
  static Given with_images_of_argo() {
    auto there = given();
    for (const auto& part : stub_charts()) there.images.insert(part.enabled_image);
    return there;
  }
  CommandResult render_package(const fs::path& package, const json& values) {
    auto arguments = with(values, {"--api-versions", kMonitoring});
    arguments.insert(arguments.begin(), {"template", "rt", package, "-n", "gitops"});
    return helm_.run(arguments);
  }
};

TEST_F(PackageWithArgo, StartsEveryProgramFromItsOwnImage) {
  const auto rendered = render_package(package(), all_of_argo());
  ASSERT_TRUE(rendered.ok()) << rendered.err;
  const auto objects = parse_manifests(rendered.out);
  ASSERT_TRUE(objects.has_value()) << objects.error().message;
  EXPECT_THAT(unmet_needs(*objects, with_images_of_argo()), IsEmpty());
  for (const auto& part : stub_charts()) {
    EXPECT_THAT(rendered.out, HasSubstr("image: " + part.enabled_image));
  }
  EXPECT_THAT(rendered.out, HasSubstr("image: \"registry.example.com/team/gitops-runtime:1.2.3\""));
  const auto& server = object(*objects, "Deployment", "argo-cd-server");
  EXPECT_EQ(server.at("/spec/template/spec/nodeSelector"_json_pointer),
            json({{"kubernetes.io/os", "linux"}, {"pool", "gitops"}}));
}

TEST_F(PackageWithArgo, RefusesGlobalsThatArgoWouldMisunderstand) {
  auto values = all_of_argo();
  values["global"]["image"] = {{"repository", "team/runtime"}};
  values["global"]["imagePullSecrets"] = json::array({"pull"});
  const auto refused = render_package(package(), values);
  EXPECT_FALSE(refused.ok());
  for (const std::string product : {"Argo CD", "Argo Events"}) {
    EXPECT_THAT(refused.err, HasSubstr("global.image: the chart of " + product + " reads it, too"));
    EXPECT_THAT(refused.err, HasSubstr("global.imagePullSecrets: the chart of " + product +
                                       " reads it, too, and takes no names; write {name: pull}"));
  }
  // Where none of them is installed, they may stay.
  for (const auto& part : stub_charts()) values[part.name] = {{"enabled", false}};
  const auto taken = render_package(folder_ / "out/gitops-runtime-with-argo-0.1.0.tgz", values);
  EXPECT_TRUE(taken.ok()) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("registry.example.com/team/team/runtime:1.2.3"));
}

// What is shipped is what was tested: the version of each part's programs is that of the test bed.
TEST(PackageParts, AreThoseOfTheTestBed) {
  const std::map<std::string, std::string> modules{
      {"argo-cd", "github.com/argoproj/argo-cd/v3"},
      {"argo-workflows", "github.com/argoproj/argo-workflows/v3"},
      {"argo-rollouts", "github.com/argoproj/argo-rollouts"},
      {"argo-events", "github.com/argoproj/argo-events"},
      {"sealed-secrets", "github.com/bitnami-labs/sealed-secrets"}};
  const fs::path source = GITOPS_SOURCE_DIR;
  const auto compatibility = read_file(source / "docs/reference/compatibility.md");
  const auto parts = stub_charts();
  for (const auto& part : parts) {
    const auto module = read_file(source / "tests/peers" / part.name / "go.mod");
    const auto tag = part.enabled_image.substr(part.enabled_image.rfind(':') + 1);
    const auto program = tag.starts_with("v") ? tag : "v" + tag;
    EXPECT_THAT(module, HasSubstr(modules.at(part.name) + " " + program)) << part.name;
    EXPECT_THAT(compatibility, HasSubstr(part.name + " " + part.version)) << "names it";
  }
}

TEST_F(PackageWithArgo, SaysWhatWasNotTested) {
  for (const auto& part : stub_charts()) pack(helm_, part, folder_.path());
  auto newer = stub_charts().front();
  ASSERT_EQ(newer.name, "argo-cd");
  newer.version = "10.1.1";
  newer.program = "v3.4.4";
  pack(helm_, newer, folder_.path());
  const auto made = run_package({"--untested", "argo-cd=10.1.1"});
  ASSERT_TRUE(made.ok()) << made.err;
  EXPECT_THAT(made.err, HasSubstr("argo-cd 10.1.1 (v3.4.4) was not tested; the tests run v3.2.11"));
  const auto package = folder_ / "out/gitops-runtime-with-argo-0.1.0.tgz";
  const auto chart = helm_.run({"show", "chart", package});
  EXPECT_THAT(chart.out, HasSubstr("gitops-runtime/untested: argo-cd 10.1.1 (v3.4.4)"));
  const auto rendered = render_package(package, all_of_argo());
  EXPECT_THAT(rendered.out, HasSubstr("image: registry.example.com/argo-cd:v3.4.4"))
      << rendered.err;

  for (const auto* wrong : {"argo-cd", "argocd=1", "argo-cd="}) {
    const auto refused = run_package({"--untested", wrong});
    EXPECT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("write NAME=VERSION, with one of argo-cd, argo-workflows"));
  }
}

TEST_F(PackageWithArgo, RefusesAChartWithOtherProgramsThanThoseTested) {
  auto parts = stub_charts();
  for (auto& part : parts) {
    if (part.name == "argo-events") part.program = "v1.0.0";
    pack(helm_, part, folder_.path());
  }
  const auto refused = run_package({});
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.err, HasSubstr("brings v1.0.0 along; v1.9.10 was tested"));
}

// -- on a real API server --

class ChartOnAServer : public PackageWithArgo {
 protected:
  static std::optional<std::string> missing() {
    if (auto lacking = Helm::missing()) return lacking;
    return PeerCluster::missing();
  }
  static void SetUpTestSuite() {
    if (missing()) return;
    cluster_ = std::make_unique<PeerCluster>();
    cluster_->apply(
        read_file(fs::path(GITOPS_SOURCE_DIR) / "tests/peers/gateway-api/httproute-crd.yaml"));
    const auto served = [] {
      return cluster_->request("GET", "/apis/gateway.networking.k8s.io/v1/httproutes").ok();
    };
    require_until(served, kTimeLimit, "HTTPRoutes to be served");
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (const auto lacking = missing()) GTEST_SKIP() << "peers: " << *lacking;
  }

  // A namespace that admits restricted pods, and the Secrets that the sets of values name.
  static std::string make_namespace(const std::string& name) {
    cluster_->create_namespace(name, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                      {"pod-security.kubernetes.io/warn", "restricted"}});
    std::map<std::string, json> secrets;
    for (const auto& path : given().secrets) {
      secrets[path.substr(0, path.find('/'))][path.substr(path.find('/') + 1)] = "x";
    }
    for (const auto& [secret, data] : secrets) {
      cluster_->apply(json{
          {"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", secret}, {"namespace", name}}},
          {"stringData",
           data}}.dump());
    }
    return name;
  }

  // All pods of the namespace's workloads run, each with everything that its kubelet would look
  // for.
  static void expect_pods_start(const std::string& ns) {
    int workloads = 0;
    for (const std::string kind : {"deployment", "statefulset"}) {
      const auto all = json::parse(cluster_->kubectl_ok({"-n", ns, "get", kind, "-o", "json"}));
      for (const auto& one : all.at("items")) {
        const std::string name = one.at("/metadata/name"_json_pointer);
        SCOPED_TRACE(name);
        ++workloads;
        try {
          if (kind == "deployment") {
            const RenderedWorkload pod(*cluster_, ns, RenderedWorkload::Deployment{name});
            EXPECT_FALSE(pod.argv().empty());
          } else {
            const RenderedWorkload pod(*cluster_, ns, name);
            EXPECT_FALSE(pod.argv().empty());
          }
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
    EXPECT_GE(workloads, 4);
  }

  static std::unique_ptr<PeerCluster> cluster_;
};

std::unique_ptr<PeerCluster> ChartOnAServer::cluster_;

TEST_F(ChartOnAServer, TakesEveryObjectOfEverySetOfValues) {
  const std::string ns = "gitops";
  cluster_->create_namespace(ns, {{"pod-security.kubernetes.io/warn", "restricted"}});
  // Most sets have most objects in common.
  std::set<std::string> objects;
  std::set<std::string> accounts;
  const auto add = [&](const std::vector<json>& rendered) {
    for (const auto& one : rendered) {
      if (one.at("apiVersion") == kMonitoring) continue;  // its kinds are not there
      objects.insert(one.dump());
      if (one.at("kind") != "Pod") continue;
      accounts.insert(one.at("/spec/serviceAccountName"_json_pointer).get<std::string>());
    }
  };
  for (const auto& [name, values] : value_sets()) add(render(values));
  const auto rendered = render_package(package(), all_of_argo());
  ASSERT_TRUE(rendered.ok()) << rendered.err;
  add(parse_manifests(rendered.out).value());
  ASSERT_GE(objects.size(), 200U);
  // The pods of helm test are refused without their accounts, and without their priority.
  cluster_->kubectl_ok({"create", "priorityclass", "high", "--value=1000"});
  for (const auto& account : accounts) {
    cluster_->kubectl_ok({"-n", ns, "create", "serviceaccount", account});
  }
  std::string all;
  for (const auto& one : objects) all += "---\n" + one + "\n";
  const auto judged =
      cluster_->kubectl({"apply", "--server-side", "--force-conflicts", "--dry-run=server",
                         "--validate=strict", "-o", "name", "-f", "-"},
                        all, std::chrono::seconds(240));
  EXPECT_TRUE(judged.ok()) << judged.err;
  EXPECT_THAT(judged.err, Not(HasSubstr("arning")));
}

class ChartInEachMode : public ChartOnAServer, public testing::WithParamInterface<std::string> {};

TEST_P(ChartInEachMode, IsInstalledAndStarts) {
  static int number = 0;
  const auto ns = make_namespace("mode-" + std::to_string(++number));
  auto values = everything_at_once();
  values["global"]["codefresh"]["accountId"] = "";
  for (const auto& access : access_modes()) {
    if (access.name == GetParam()) values = merged(values, access.values);
  }
  auto arguments = with(values);
  arguments.insert(arguments.begin(), {"install", "rt", chart_folder(), "-n", ns, "--wait=false"});
  const auto installed = helm_.run(arguments, cluster_->kubeconfig());
  ASSERT_TRUE(installed.ok()) << installed.err;
  EXPECT_THAT(installed.err, Not(HasSubstr("arning")));
  expect_pods_start(ns);
  const auto again = [&] {
    auto upgrade = with(values);
    upgrade.insert(upgrade.begin(), {"upgrade", "rt", chart_folder(), "-n", ns});
    return helm_.run(upgrade, cluster_->kubeconfig());
  }();
  EXPECT_TRUE(again.ok()) << again.err;
  const auto gone = helm_.run({"uninstall", "rt", "-n", ns}, cluster_->kubeconfig());
  EXPECT_TRUE(gone.ok()) << gone.err;
}

INSTANTIATE_TEST_SUITE_P(Access, ChartInEachMode,
                         testing::Values("none", "ingress", "httpRoute", "tunnel", "ingressUrl"),
                         [](const auto& info) { return info.param; });

TEST_F(ChartOnAServer, StartsThePackageWithArgo) {
  const auto ns = make_namespace("with-argo");
  auto values = all_of_argo();
  values["global"].erase("nodeSelector");  // the only node has no such label
  auto arguments = with(values);
  cluster_->kubectl_ok({"label", "node", std::string(PeerCluster::kNodeName), "--overwrite",
                        "kubernetes.io/os=linux"});
  arguments.insert(arguments.begin(), {"install", "rt", package(), "-n", ns, "--wait=false"});
  const auto installed = helm_.run(arguments, cluster_->kubeconfig());
  ASSERT_TRUE(installed.ok()) << installed.err;
  expect_pods_start(ns);
  EXPECT_EQ(cluster_->kubectl_ok({"-n", ns, "get", "deployment", "argo-cd-server", "-o",
                                  "jsonpath={.spec.template.spec.containers[0].image}"}),
            "registry.example.com/argo-cd:v3.2.11");
}

TEST_F(ChartOnAServer, TakesTheValuesOfAReleaseThatHadFewerKeys) {
  const auto ns = make_namespace("reused");
  // Security contexts are maps of the user's, which are empty without their default.
  cluster_->kubectl_ok({"label", "namespace", ns, "pod-security.kubernetes.io/enforce-"});
  auto arguments = with(everything_at_once());
  arguments.insert(arguments.begin(), {"install", "rt", without_values(), "-n", ns});
  const auto installed = helm_.run(arguments, cluster_->kubeconfig());
  ASSERT_TRUE(installed.ok()) << installed.err;
  const auto upgraded = helm_.run({"upgrade", "rt", chart_folder(), "-n", ns, "--reuse-values"},
                                  cluster_->kubeconfig());
  ASSERT_TRUE(upgraded.ok()) << upgraded.err;
  expect_pods_start(ns);
}

TEST_F(ChartOnAServer, KeepsWorkloadsOfTheOtherPartsOfARelease) {
  const auto ns = make_namespace("umbrella");
  const auto chart = folder_ / "umbrella";
  fs::create_directories(chart / "charts");
  fs::create_directories(chart / "templates");
  fs::copy(chart_folder(), chart / "charts/gitops-runtime", fs::copy_options::recursive);
  write_file(chart / "Chart.yaml",
             "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies:\n"
             "  - {name: gitops-runtime, version: 0.1.0, condition: gitops-runtime.enabled}\n");
  write_file(
      chart / "templates/other.yaml",
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\nspec:\n  replicas: 0\n"
      "  selector: {matchLabels: {app: other}}\n  template:\n    metadata: {labels: {app: "
      "other}}\n    spec: {containers: [{name: c, image: other}]}\n");
  const json values{{"gitops-runtime", merged(everything_at_once(), {{"enabled", true}})}};
  for (const auto* verb : {"install", "upgrade"}) {
    auto arguments = with(values);
    arguments.insert(arguments.begin(), {verb, "rt", chart, "-n", ns});
    const auto done = helm_.run(arguments, cluster_->kubeconfig());
    ASSERT_TRUE(done.ok()) << verb << ": " << done.err;
  }
  // A workload that only the older chart has is still asked about.
  const json older{{"apiVersion", "apps/v1"},
                   {"kind", "Deployment"},
                   {"metadata",
                    {{"name", "gitops-operator"},
                     {"namespace", ns},
                     {"annotations", {{"meta.helm.sh/release-name", "rt"}}}}},
                   {"spec",
                    {{"replicas", 0},
                     {"selector", {{"matchLabels", {{"app", "x"}}}}},
                     {"template",
                      {{"metadata", {{"labels", {{"app", "x"}}}}},
                       {"spec", {{"containers", {{{"name", "c"}, {"image", "older"}}}}}}}}}}};
  cluster_->apply(older.dump());
  auto arguments = with(values);
  arguments.insert(arguments.begin(), {"upgrade", "rt", chart, "-n", ns});
  const auto refused = helm_.run(arguments, cluster_->kubeconfig());
  EXPECT_THAT(refused.err, HasSubstr("- Deployment gitops-operator\n"));
}

}  // namespace
}  // namespace gitops::test
