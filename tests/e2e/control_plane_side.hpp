#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_bed.hpp"
#include "doubles/fake_platform.hpp"
#include "support/process.hpp"

// The control plane of tests that run against its double and against the program. What a test asks of it is what it
// holds; what it was sent, and in which order, only the double knows.
namespace gitops::test {

enum class ControlPlaneKind : std::uint8_t { fake, program };

// The name of a parameter of a test.
inline std::string kind_name(ControlPlaneKind kind) {
  return kind == ControlPlaneKind::fake ? "Double" : "Program";
}

class ControlPlaneSide {
 public:
  // The double outlives this object and is used when the kind is `fake`. It knows the users of
  // daemons/control_plane_users.hpp.
  ControlPlaneSide(ControlPlaneKind kind, FakePlatform& fake, ControlPlaneBed::Options options = {})
      : fake_(fake) {
    if (kind == ControlPlaneKind::program) program_.emplace(std::move(options));
  }

  [[nodiscard]] bool is_program() const { return program_.has_value(); }
  // Requires the kind `program`.
  ControlPlaneBed& program() { return program_.value(); }

  // Settings by which app-proxy reaches it.
  [[nodiscard]] Environment environment() const {
    if (!program_) return {{"CF_HOST", fake_.url().to_string() + "/"}};
    return {{"CF_HOST", program_->url()}, {"NODE_EXTRA_CA_CERTS", program_->ca_file().string()}};
  }

  // The name of the runtime that a token belongs to; empty when it is not accepted.
  [[nodiscard]] std::string runtime_of(const std::string& token) const {
    return program_ ? program_->runtime_of(token) : fake_.accounts().runtime_of(token);
  }
  [[nodiscard]] std::size_t runtimes() const {
    if (!program_) return fake_.accounts().runtimes();
    return program_->ask("{runtimes{edges{node{metadata{name}}}}}")["edges"].size();
  }
  // The arguments of the runtime's registration that the schema shows; null without the runtime.
  [[nodiscard]] nlohmann::json registration(const std::string& name) const {
    nlohmann::json shown = nlohmann::json::object();
    if (!program_) {
      for (const nlohmann::json& one : fake_.accounts().life().registered) {
        if (one["runtimeName"] == name) shown = one;
      }
      if (shown.empty()) return nullptr;
      shown.erase("componentNames");
      return shown;
    }
    const auto runtime = program_->ask(
        "query R($name: String!){runtime(name: $name){metadata{name namespace} isExternalArgoCd "
        "chartVersion cluster ingressClass ingressController ingressHost installationType managed "
        "runtimeVersion}}",
        {{"name", name}});
    if (runtime.is_null()) return nullptr;
    for (const auto& [key, value] : runtime.items()) {
      if (key != "metadata") shown[key] = value.is_null() ? nlohmann::json("") : value;
    }
    shown["runtimeName"] = runtime["metadata"]["name"];
    shown["runtimeNamespace"] = runtime["metadata"]["namespace"];
    return shown;
  }
  // The last status of the runtime: {"isc": {"status"}, "syncMode"}; empty before the first one.
  [[nodiscard]] nlohmann::json status(const std::string& name) const {
    if (!program_) {
      for (auto one = fake_.accounts().life().statuses.rbegin();
           one != fake_.accounts().life().statuses.rend(); ++one) {
        if ((*one)["runtime"] == name) return (*one)["status"];
      }
      return nlohmann::json::object();
    }
    const auto runtime = program_->ask(
        "query R($name: String!){runtime(name: $name){status{encryptionIv{status} isc{status} "
        "eventReporterArgoCDToken{status} syncMode argoCdState}}}",
        {{"name", name}});
    return runtime.is_null() ? nlohmann::json::object() : runtime["status"];
  }
  // The messages that the runtime has reported and not taken back, a line each.
  [[nodiscard]] std::string errors(const std::string& name) const {
    nlohmann::json list = nlohmann::json::array();
    if (program_) {
      const auto runtime = program_->ask(
          "query R($name: String!){runtime(name: $name){errors{message}}}", {{"name", name}});
      if (!runtime.is_null()) list = runtime["errors"];
    } else if (!fake_.accounts().life().errors.empty()) {
      list = fake_.accounts().life().errors.back()["errors"];
    }
    std::string text;
    for (const nlohmann::json& one : list) text += one["message"].get<std::string>() + "\n";
    return text;
  }
  // The states of the runtime's clusters by name: {"here": "Successful"}. A cluster that was
  // removed is absent.
  [[nodiscard]] std::map<std::string, std::string> clusters(const std::string& runtime) const {
    std::map<std::string, std::string> states;
    if (program_) {
      const auto slice = program_->ask(
          "query C($runtime: String){clusters(runtime: $runtime){edges{node{metadata{name} "
          "info{connectionState{status}}}}}}",
          {{"runtime", runtime}});
      for (const nlohmann::json& edge : slice["edges"]) {
        states[edge["node"]["metadata"]["name"]] =
            edge["node"]["info"]["connectionState"]["status"];
      }
      return states;
    }
    std::map<std::string, nlohmann::json> by_server;
    for (const nlohmann::json& list : fake_.accounts().life().clusters) {
      for (const nlohmann::json& one : list) by_server[one["server"]] = one;
    }
    for (const auto& [server, one] : by_server) {
      const std::string status = one["info"]["connectionState"]["status"];
      if (one["runtime"] == runtime && status != "Unknown") states[one["name"]] = status;
    }
    return states;
  }
  // The sealing key of an id, in base64, as the runtime of the token gets it.
  [[nodiscard]] std::string sealing_key(const std::string& id, const std::string& token) const {
    if (program_) {
      return program_->ask("query K($id: String!){getSealingKey(id: $id)}", {{"id", id}}, token);
    }
    const auto& keys = fake_.accounts().sealing_keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (id == "key-" + std::to_string(i + 1)) return keys[i];
    }
    return {};
  }

  // Sets the account's Git settings. An empty provider leaves that of the program.
  void set_git(const std::string& provider, const std::string& api_url,
               const std::string& repository) {
    if (program_) {
      if (!provider.empty()) return program_->set_git(provider, api_url, repository);
      if (!repository.empty()) {
        program_->ask("mutation S($url: String!){suggestIscRepo(suggestedSharedConfigRepo: $url)}",
                      {{"url", repository}});
      }
      return;
    }
    fake_.accounts().add({.id = kAccountId,
                          .name = "acme",
                          .admins = {kAnnId},
                          .git_provider = provider,
                          .git_api_url = api_url,
                          .shared_config_repo = repository});
  }
  // Replaces the rules of the account.
  void set_rules(const nlohmann::json& rules) {
    if (!program_) return fake_.accounts().set_rules(rules);
    program_->remove_rules();
    program_->add_rules(rules);
  }

  // Makes an Application known: of the runtime "prod", in the namespace "argocd".
  void put_application(const std::string& name, const FakeAccounts::Source& source) {
    if (!program_) return fake_.accounts().set_application(name, source);
    const nlohmann::json application{
        {"apiVersion", "argoproj.io/v1alpha1"},
        {"kind", "Application"},
        {"metadata", {{"name", name}, {"namespace", "argocd"}, {"uid", "uid-" + name}}},
        {"spec",
         {{"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", "web"}}},
          {"source",
           {{"repoURL", source.repository},
            {"targetRevision", source.revision},
            {"path", source.path}}}}},
        {"status", {{"sync", {{"status", "Synced"}}}, {"health", {{"status", "Healthy"}}}}}};
    const auto stored = program_->program().post_application(kProdToken, application.dump(), 1);
    EXPECT_TRUE(stored.ok()) << stored.body;
  }

  [[nodiscard]] std::string logs() const {
    return program_ ? "control plane:\n" + program_->program().log() : std::string();
  }
  // Stops the program, whose exit code must be 0. The double is stopped by its owner.
  void stop() {
    if (program_) EXPECT_EQ(program_->program().stop(), 0) << program_->program().log();
  }

 private:
  FakePlatform& fake_;
  std::optional<ControlPlaneBed> program_;
};

}  // namespace gitops::test
