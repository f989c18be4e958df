#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "app-proxy/resolvers/table.hpp"
#include "doubles/double_server.hpp"
#include "e2e/git_harness.hpp"
#include "support/git_server.hpp"
#include "test_http/responses.hpp"

// The examples of the page, and the peers that give the responses of the page.
namespace gitops::test {

inline constexpr auto kAnn = AppProxyHarness::kAnn;

struct Example {
  std::string document;
  std::string answer;  // JSON; a text "…" stands for any
};

// The blocks of the page: documents, each followed by its answer.
inline std::vector<Example> examples(std::string_view page) {
  std::vector<Example> found;
  constexpr std::string_view kDocument = "```graphql\n";
  constexpr std::string_view kAnswer = "```\n```json\n";
  while (true) {
    const auto begin = page.find(kDocument);
    if (begin == std::string_view::npos) return found;
    page.remove_prefix(begin + kDocument.size());
    const auto end = page.find(kAnswer);
    const auto last = page.find("```\n", end + kAnswer.size());
    if (end == std::string_view::npos || last == std::string_view::npos ||
        end != page.find("```")) {
      ADD_FAILURE() << "no answer follows " << page.substr(0, 60);
      return found;
    }
    const auto answer = end + kAnswer.size();
    found.push_back(
        {std::string(page.substr(0, end)), std::string(page.substr(answer, last - answer))});
    page.remove_prefix(last);
  }
}

// The examples of both pages, in their order.
inline std::vector<Example> documented_examples() {
  const auto folder = std::filesystem::path(GITOPS_SOURCE_DIR) / "docs/reference/app-proxy";
  return examples(read_file(folder / "examples.md") + read_file(folder / "examples-argo.md"));
}

// Puts "…" where the wanted answer has it.
inline void forget_what_varies(nlohmann::json& got, const nlohmann::json& wanted) {
  if (wanted == "…" && got.is_string() && !got.get_ref<const std::string&>().empty()) got = "…";
  if (!wanted.is_structured() || got.type() != wanted.type()) return;
  for (const auto& [key, value] : wanted.items()) {
    if (wanted.is_array()) {
      const auto index = std::stoul(key);
      if (index < got.size()) forget_what_varies(got[index], value);
    } else if (got.contains(key)) {
      forget_what_varies(got[key], value);
    }
  }
}

inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// argocd-server with the Application "shop" and argo-server with some Workflows, in the forms of their
// public API descriptions.
struct ArgoServers {
  explicit ArgoServers(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server.port());
  }

  static nlohmann::json application() {
    return {
        {"metadata", {{"name", "shop"}, {"namespace", "argocd"}, {"uid", "4f2a"}}},
        {"spec",
         {{"project", "default"},
          {"source",
           {{"repoURL", "https://git.example.com/acme/shop.git"},
            {"path", "deploy"},
            {"targetRevision", "main"}}},
          {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", "web"}}}}},
        {"status",
         {{"health", {{"status", "Healthy"}}},
          {"sync", {{"status", "OutOfSync"}, {"revision", "9fceb02"}}},
          {"history", {{{"id", 3}, {"revision", "4b825dc"}}}},
          {"resources",
           {{{"group", "apps"},
             {"version", "v1"},
             {"kind", "Deployment"},
             {"namespace", "web"},
             {"name", "ui"},
             {"status", "Synced"}},
            {{"group", "argoproj.io"},
             {"version", "v1alpha1"},
             {"kind", "Rollout"},
             {"namespace", "web"},
             {"name", "ui"}}}}}}};
  }

  static nlohmann::json workflow(const std::string& name) {
    const bool failed = name == "build-failed";
    nlohmann::json object{{"metadata", {{"name", name}, {"namespace", "ci"}}},
                          {"spec", {{"entrypoint", "main"}}},
                          {"status", {{"phase", failed ? "Failed" : "Running"}}}};
    if (name == "build-held") object["spec"]["suspend"] = true;
    return object;
  }

  static nlohmann::json answer(const std::string& method, const std::string& path) {
    if (path.contains("/workflow")) {
      if (path.ends_with("/submit") || path.ends_with("/resubmit")) return workflow("build-n8w4q");
      const auto name = path.substr(path.find("/ci/") + 4);
      return workflow(name.substr(0, name.find('/')));
    }
    if (path.ends_with("/resource-tree")) {
      const nlohmann::json pod{
          {"version", "v1"}, {"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-7c9"}};
      return {{"nodes", {pod}}};
    }
    if (path.ends_with("/managed-resources")) {
      return {{"items",
               {{{"group", "apps"},
                 {"kind", "Deployment"},
                 {"namespace", "web"},
                 {"name", "ui"},
                 {"liveState", R"({"spec":{"replicas":1}})"},
                 {"targetState", R"({"spec":{"replicas":1}})"}}}}};
    }
    if (path.contains("/resource/actions")) {
      return method == "GET" ? nlohmann::json{{"actions", {{{"name", "restart"}}}}}
                             : nlohmann::json::object();
    }
    if (path.ends_with("/resource")) return {{"manifest", R"({"spec":{"replicas":2}})"}};
    return application();
  }

  static Task<> serve(http::Exchange& exchange) {
    (void)co_await exchange.read_body(1024 * 1024);
    const std::string path(exchange.path());
    if (!path.ends_with("/logs") && !path.ends_with("/log")) {
      (void)co_await exchange.reply(json_ok(answer(exchange.request().method, path).dump()));
      co_return;
    }
    const nlohmann::json line{{"content", "listening on port 8080"},
                              {"podName", path.contains("/workflows/") ? "build-x7k2p" : "ui-7c9"},
                              {"timeStampStr", "2026-03-04T09:15:27Z"},
                              {"last", false}};
    (void)co_await exchange.start({.status = 200});
    (void)co_await exchange.write(nlohmann::json{{"result", line}}.dump() + "\n");
    (void)co_await exchange.write(R"({"result":{"content":"","last":true}})");
    (void)co_await exchange.finish();
  }

  http::Server server;
};

struct ExampleHarness {
  ExampleHarness(GitHarness& w, const Executor& executor) : base(w), argo(executor) {
    git.create_repository("config");
    git.create_repository("shop");
    git.commit("shop", {{"deploy/app.yaml", "replicas: 1\n"}}, "begin");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    base.host.find("acme", "shop")->clone_url = git.url("shop");
    base.base.platform.accounts().add({.id = "acc-1",
                                       .name = "acme",
                                       .admins = {"u-ann"},
                                       .git_provider = {},
                                       .shared_config_repo = git.url("config")});
    put_objects();
  }

  // The Rollout "ui" in its second revision, a run and an experiment of it, and pods.
  void put_objects() {
    auto& cluster = base.cluster;
    const auto put = [&](k8s::Resource resource, nlohmann::json object, nlohmann::json metadata) {
      cluster.add_type(resource);
      object["apiVersion"] =
          resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
      object["kind"] = resource.kind;
      object["metadata"] = std::move(metadata);
      cluster.put(resource, std::move(object));
    };
    const auto pods = [](const char* image) {
      return nlohmann::json{{"metadata", {{"labels", {{"app", "ui"}}}}},
                            {"spec", {{"containers", {{{"name", "ui"}, {"image", image}}}}}}};
    };
    put(k8s::resources::kRollouts,
        {{"spec",
          {{"selector", {{"matchLabels", {{"app", "ui"}}}}},
           {"template", pods("registry.example.com/ui:2")}}}},
        {{"name", "ui"}, {"namespace", "web"}, {"uid", "r-1"}});
    const auto owned_by_ui = nlohmann::json::array({{{"apiVersion", "argoproj.io/v1alpha1"},
                                                     {"kind", "Rollout"},
                                                     {"name", "ui"},
                                                     {"uid", "r-1"},
                                                     {"controller", true}}});
    for (const char* revision : {"1", "2"}) {
      const std::string image = std::string("registry.example.com/ui:") + revision;
      put(k8s::resources::kReplicaSets, {{"spec", {{"template", pods(image.c_str())}}}},
          {{"name", std::string("ui-") + revision},
           {"namespace", "web"},
           {"labels", {{"app", "ui"}}},
           {"annotations", {{"rollout.argoproj.io/revision", revision}}},
           {"ownerReferences", owned_by_ui}});
    }
    const k8s::Resource experiments{"argoproj.io", "v1alpha1", "experiments", "Experiment"};
    for (const auto& resource : {k8s::resources::kAnalysisRuns, experiments}) {
      put(resource, {{"status", {{"phase", "Running"}}}},
          {{"name", "ui-5d4f-2"}, {"namespace", "web"}, {"ownerReferences", owned_by_ui}});
    }
    put(k8s::resources::kPods, {{"spec", {{"containers", {{{"name", "main"}}}}}}},
        {{"name", "cap-app-proxy-6d4-x2x7k"},
         {"namespace", "default"},
         {"labels", {{"pod-template-hash", "6d4"}}},
         {"ownerReferences",
          {{{"apiVersion", "apps/v1"},
            {"kind", "ReplicaSet"},
            {"name", "cap-app-proxy-6d4"},
            {"uid", "u"},
            {"controller", true}}}}});
    cluster.put_secret({"default", "cluster-east"},
                       {{"name", "east"}, {"server", "https://east.example.com"}},
                       {{"argocd.argoproj.io/secret-type", "cluster"}});
    cluster.add_type({"codefresh.io", "v1beta1", "restrictedgitsources", "RestrictedGitSource"});
    put({"", "v1", "events", "Event"},
        {{"involvedObject", {{"kind", "Pod"}, {"name", "ui-7c9"}}},
         {"type", "Normal"},
         {"reason", "Pulled"},
         {"message", "Container image is present"},
         {"lastTimestamp", "2026-03-04T09:15:27Z"}},
        {{"name", "ui-7c9.1"}, {"namespace", "web"}});
  }

  Task<> start() {
    base.start({{"REPOS_DIR", (folder / "clones").string()},
                {"ARGO_CD_URL", argo.url()},
                {"ARGO_CD_TOKEN", "argocd.double.token"},
                {"ARGO_WORKFLOWS_URL", argo.url()}});
    co_await base.base.account_known();
  }
  Task<> stop() {
    base.base.client.close_idle();
    co_await argo.server.stop(Clock::now());
  }

  // Names of the page and those of this harness.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> names() const {
    std::string root = base.host.api_root().text();
    return {{"https://github.example.com/api/v3", root}, {"YOUR-GIT-TOKEN", FakeGitHost::kToken}};
  }

  Task<AppProxyHarness::Answer> ask(const std::string& document) {
    auto& proxy = base.base;
    if (document.starts_with("subscription")) return proxy.subscribe(document, proxy.as(kAnn));
    return proxy.ask(document, proxy.as(kAnn));
  }

  GitHarness& base;
  GitServer git;
  TempDir folder;
  ArgoServers argo;
};

}  // namespace gitops::test
