#include "bench/changing_applications.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <tuple>

#include <nlohmann/json.hpp>

#include "support/sample_application.hpp"

namespace gitops::bench {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVersionMark = "@version@";
constexpr std::string_view kCommitMark = "@commit@";
constexpr std::string_view kReplicasMark = "@replicas@";
constexpr std::string_view kFirstCommit = "5b1e0f2f7c8d9a4b3c6e1d0f9a8b7c6d5e4f3a2b";

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// An Application that was synced to a commit, as the API server writes it.
Template application_template(Json object) {
  auto& status = object["status"];
  status["sync"]["revision"] = kCommitMark;
  status["operationState"]["startedAt"] = "2026-03-05T00:00:00Z";
  status["operationState"]["operation"]["sync"]["revision"] = kCommitMark;
  status["operationState"]["syncResult"]["revision"] = kCommitMark;
  status["history"].back()["revision"] = kCommitMark;
  return {object.dump(), {kVersionMark, kCommitMark}};
}

std::string deployment_name(int number) {
  return "web-" + std::to_string(number);
}

std::string tree_text(int resources) {
  Json nodes = Json::array();
  for (int i = 0; i < resources; ++i) {
    nodes.push_back({{"group", "apps"},
                     {"version", "v1"},
                     {"kind", "Deployment"},
                     {"namespace", "shop"},
                     {"name", deployment_name(i)},
                     {"uid", "uid-" + deployment_name(i)},
                     {"resourceVersion", "7"},
                     {"createdAt", "2026-03-04T09:15:27Z"},
                     {"health", {{"status", "Healthy"}}}});
  }
  return Json{{"nodes", nodes}}.dump();
}

std::string managed_text(int resources) {
  Json managed = Json::array();
  for (int i = 0; i < resources; ++i) {
    const auto manifest = R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" +
                          deployment_name(i) + R"(","namespace":"shop"},"spec":{"replicas":)" +
                          (i == 0 ? std::string(kReplicasMark) : "2") + "}}";
    managed.push_back({{"group", "apps"},
                       {"kind", "Deployment"},
                       {"namespace", "shop"},
                       {"name", deployment_name(i)},
                       {"targetState", manifest},
                       {"liveState", manifest}});
  }
  return Json{{"items", managed}}.dump();
}

}  // namespace

Template::Template(std::string_view text, std::initializer_list<std::string_view> marks) {
  while (true) {
    auto at = text.size();
    std::size_t which = 0;
    std::size_t size = 0;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const auto mark = std::data(marks)[i];
      if (const auto found = text.find(mark); found < at) {
        at = found;
        which = i;
        size = mark.size();
      }
    }
    parts_.emplace_back(text.substr(0, at), which);
    if (at == text.size()) return;
    text.remove_prefix(at + size);
  }
}

std::string Template::fill(std::initializer_list<std::string_view> values) const {
  std::string out;
  for (const auto& [text, which] : parts_) {
    out += text;
    if (&text != &parts_.back().first) out += std::data(values)[which];
  }
  return out;
}

ChangingApplications::ChangingApplications(const Executor& executor, int applications,
                                           int resources)
    : cluster_(executor),
      tree_(tree_text(resources)),
      managed_(managed_text(resources), {kReplicasMark}),
      argocd_(executor, {}, [this](http::Exchange& exchange) { return answer(exchange); }) {
  if (!cluster_.listen() || !argocd_.listen()) throw std::runtime_error("the peers do not start");
  for (int i = 0; i < applications; ++i) {
    const auto name = "app-" + std::to_string(i);
    auto object =
        Json::parse(test::sample_application("argocd", name, std::string(kVersionMark), resources));
    std::string uid = object["metadata"]["uid"];
    apps_.push_back(
        {.name = name, .uid = std::move(uid), .text = application_template(std::move(object))});
    put(apps_.back(), kFirstCommit);
  }
}

Task<> ChangingApplications::stop() {
  co_await argocd_.stop(deadline_after(std::chrono::seconds(1)));
  co_await cluster_.stop();
}

std::string ChangingApplications::argocd_url() const {
  return "http://127.0.0.1:" + std::to_string(argocd_.port());
}

ChangingApplications::Change ChangingApplications::change(std::size_t index) {
  std::array<char, 41> commit{};
  std::snprintf(commit.data(), commit.size(), "%040llx",
                static_cast<unsigned long long>(++changes_));
  auto& app = apps_[index];
  ++app.replicas;
  const auto version = cluster_.next_version();
  put(app, commit.data());
  return {.commit = commit.data(), .version = version};
}

void ChangingApplications::remove_all() {
  for (const auto& app : apps_) cluster_.remove(app.name);
}

void ChangingApplications::put(const App& app, std::string_view commit) {
  cluster_.put(app.name, app.text.fill({std::to_string(cluster_.next_version()), commit}));
}

Task<> ChangingApplications::answer(http::Exchange& exchange) {
  const auto path = exchange.path();
  std::string body = R"({"Version":"v3.0.0"})";
  if (!path.ends_with("/version")) ++reads_;
  if (path.ends_with("/resource-tree")) {
    body = tree_;
  } else if (path.ends_with("/managed-resources")) {
    const auto name = path.substr(0, path.rfind('/'));
    const auto& app = apps_[number(name.substr(name.rfind('-') + 1))];
    body = managed_.fill({std::to_string(app.replicas)});
  } else if (path.ends_with("/metadata")) {
    body = R"({"author":"A <a@example.com>","date":"2026-03-04T09:12:02Z","message":"scale"})";
  }
  std::ignore = co_await exchange.reply(
      {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body)});
}

}  // namespace gitops::bench
