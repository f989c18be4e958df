#include "chart/value_sets.hpp"

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "chart/helm.hpp"
#include "support/process.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

json ingress(const json& more) {
  json values{{"enabled", true}, {"hosts", {"a.example.com", "b.example.com"}}};
  values.update(more);
  return {{"global", {{"runtime", {{"ingress", values}}}}}};
}

// The only document of a text of YAML.
json parse_one(const std::string& text, const std::string& name) {
  auto documents = parse_manifests(text);
  if (!documents) throw std::runtime_error(name + ": " + documents.error().message);
  if (documents->size() != 1) throw std::runtime_error(name + ": not one document");
  return documents->front();
}

bool is_values(const json& block, const json& known) {
  if (!block.is_object()) return false;
  for (const auto& [key, value] : block.items()) {
    if (!known.contains(key)) return false;
  }
  return true;
}

// The blocks of YAML in the documents that hold values of the chart.
std::vector<ValueSet> documented() {
  const auto schema = json::parse(read_file(chart_folder() / "values.schema.json"));
  std::vector<ValueSet> sets;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(GITOPS_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() != ".md") continue;
    std::istringstream lines(read_file(entry.path()));
    std::string block;
    bool inside = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("```")) {
        if (inside) block += line + "\n";
        continue;
      }
      if (inside) {
        const auto name = entry.path().lexically_relative(GITOPS_SOURCE_DIR).string() + " " +
                          std::to_string(++number);
        const auto documents = parse_manifests(block);
        if (documents && documents->size() == 1 &&
            is_values(documents->front(), schema.at("properties"))) {
          sets.push_back({name, merged(least_values(), documents->front())});
        }
        block.clear();
      }
      inside = !inside && line == "```yaml";
    }
  }
  return sets;
}

}  // namespace

std::vector<Choice> access_modes() {
  const json http_route{
      {"enabled", true}, {"hostnames", {"r.example.com"}}, {"parentRefs", {{{"name", "gw"}}}}};
  return {{"none", json::object(), ""},
          {"ingress",
           ingress({{"className", "traefik"},
                    {"tls", {{{"secretName", "t"}, {"hosts", {"a.example.com"}}}}}}),
           "https://a.example.com"},
          {"httpRoute",
           {{"global", {{"runtime", {{"httpRoute", http_route}}}}}},
           "https://r.example.com"},
          {"tunnel",
           {{"global", {{"codefresh", {{"accountId", "0123456789abcdef01234567"}}}}},
            {"tunnel-client", {{"tunnelServer", {{"subdomainHost", "t.example.com"}}}}}},
           "https://0123456789abcdef01234567-demo.t.example.com"},
          {"ingressUrl",
           {{"global", {{"runtime", {{"ingressUrl", "https://mesh.example.com/"}}}}},
            {"tunnel-client", {{"enabled", false}}}},
           "https://mesh.example.com"}};
}

std::vector<Choice> argo_cds() {
  const auto server = [](const json& values) {
    return json{{"global", {{"integrations", {{"argo-cd", {{"server", values}}}}}}}};
  };
  return {
      {"stock", json::object(), "https://argocd-server:443"},
      {"plain", server({{"svc", "argo-cd-server"}, {"port", 80}}), "argo-cd-server:80"},
      {"elsewhere",
       server({{"svc", "argocd-server.argocd"},
               {"tls", {{"caCerts", {{"secretKeyRef", nullptr}}}}},
               {"rootpath", "/argocd"},
               {"auth", {{"passwordSecretKeyRef", {{"name", "initial"}, {"key", "password"}}}}}}),
       "https://argocd-server.argocd:443"}};
}

std::vector<Choice> surroundings() {
  const json ca{{"secretKeyRef", {{"name", "ca"}, {"key", "ca.pem"}}}};
  return {{"cloud", json::object()},
          {"singleNamespace", {{"global", {{"runtime", {{"singleNamespace", true}}}}}}},
          {"onPremises",
           {{"global",
             {{"codefresh",
               {{"url", "https://gitops.corp.example.com:8443/base"}, {"tls", {{"caCerts", ca}}}}},
              {"httpsProxy", "http://proxy.corp.example.com:3128"},
              {"noProxy", ".corp.example.com"}}},
            {"app-proxy", {{"enabled", true}, {"config", {{"cors", nullptr}}}}}}},
          {"privateRegistry",
           {{"global",
             {{"imageRegistry", "registry.example.com:5000/team"},
              {"imagePullSecrets", {{{"name", "pull"}}}},
              {"commonLabels", {{"team", "x"}}},
              {"priorityClassName", "high"},
              {"networkPolicy", {{"enabled", true}}}}},
            {"image", {{"tag", "1.2.3"}}},
            {"app-proxy", {{"enabled", true}}}}},
          {"large",
           {{"global",
             {{"event-reporters", {{"replicaCount", 3}, {"persistence", {{"enabled", false}}}}}}},
            {"internal-router", {{"hpa", {{"enabled", true}}}}},
            {"app-proxy", {{"enabled", true}, {"replicaCount", 2}, {"pdb", {{"enabled", true}}}}},
            {"event-reporters", {{"cluster-event-reporter", {{"managedClusters", true}}}}}}}};
}

json least_values() {
  return {{"global",
           {{"codefresh", {{"url", "https://cp.example.com"}}}, {"runtime", {{"name", "demo"}}}}}};
}

json merged(json base, const json& over) {
  for (const auto& [key, value] : over.items()) {
    base[key] = value.is_object() && base.contains(key) ? merged(base[key], value) : value;
  }
  return base;
}

json everything_at_once() {
  const auto ref = [](const char* name, const char* key) {
    return json{{"secretKeyRef", {{"name", name}, {"key", key}}}};
  };
  const json monitored{{"serviceMonitor", {{"enabled", true}}},
                       {"prometheusRule", {{"enabled", true}}}};
  json values =
      merged(least_values(),
             {{"global",
               {{"codefresh",
                 {{"accountId", "0123456789abcdef01234567"},
                  {"userToken", ref("user-token", "token")},
                  {"tls", {{"caCerts", ref("ca", "ca.pem")}}}}},
                {"commonLabels", {{"team", "a"}}},
                {"imagePullSecrets", {"pull"}},
                {"networkPolicy", {{"enabled", true}}},
                {"runtime", {{"gitCredentials", {{"password", ref("git", "password")}}}}},
                {"event-reporters",
                 {{"replicaCount", 2},
                  {"persistence", {{"enabled", false}}},
                  {"dashboard", {{"enabled", true}}}}}}},
              {"event-reporters", {{"cluster-event-reporter", {{"managedClusters", true}}}}},
              {"internal-router",
               {{"hpa", {{"enabled", true}}}, {"routing", {{"workflows", {{"enabled", true}}}}}}},
              {"app-proxy",
               {{"enabled", true},
                {"replicaCount", 2},
                {"pdb", {{"enabled", true}}},
                {"actions", {{"enabled", true}}},
                {"sourceFiles", {{"enabled", true}}},
                {"image-enrichment", {{"enabled", true}}},
                {"repositories", {{"signingKeySecret", "signing"}}}}},
              {"tunnel-client", {{"tunnelServer", {{"caCerts", ref("ca", "ca.pem")}}}}},
              {"tunnel-server",
               {{"enabled", true},
                {"subdomainHost", "tunnels.example.com"},
                {"auth", {{"runtimes", ref("runtimes", "list")}}},
                {"clients", {{"hosts", {"c.example.com"}}, {"ingress", {{"enabled", true}}}}},
                {"users", {{"ingress", {{"enabled", true}}}}},
                {"api", {{"enabled", true}, {"token", ref("runtimes", "token")}}}}}});
  for (const auto* name : {"internal-router", "app-proxy", "tunnel-client", "tunnel-server"}) {
    values[name].update(monitored);
  }
  values["global"]["event-reporters"].update(monitored);
  return values;
}

std::vector<ValueSet> older_examples() {
  const auto file = fs::path(GITOPS_SOURCE_DIR) / "tests/chart/older_examples.json";
  std::vector<ValueSet> sets;
  for (const auto& one : json::parse(read_file(file))) {
    sets.push_back(
        {"older: " + one.at("name").get<std::string>(), merged(least_values(), one.at("values"))});
  }
  return sets;
}

std::vector<ValueSet> value_sets() {
  std::vector<ValueSet> sets{{"everything", everything_at_once()}};
  for (const auto& access : access_modes()) {
    for (const auto& argo_cd : argo_cds()) {
      for (const auto& around : surroundings()) {
        auto values = least_values();
        for (const auto* choice : {&access, &argo_cd, &around}) {
          values = merged(values, choice->values);
        }
        sets.push_back({access.name + ", " + argo_cd.name + ", " + around.name, values});
      }
    }
  }
  const auto minimal = parse_one(read_file(values_file("minimal.yaml")), "minimal.yaml");
  for (const auto& entry : fs::directory_iterator(chart_folder() / "tests/values")) {
    const auto name = entry.path().filename().string();
    if (name == "hostile.yaml") continue;  // label names that Kubernetes refuses
    sets.push_back({name, merged(minimal, parse_one(read_file(entry.path()), name))});
  }
  for (auto& more : {documented(), older_examples()}) {
    sets.insert(sets.end(), more.begin(), more.end());
  }
  return sets;
}

}  // namespace gitops::test
