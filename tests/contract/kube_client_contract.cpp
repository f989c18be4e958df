#include "contract/kube_client_contract.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/task_group.hpp"
#include "event-reporter/shards/failover.hpp"
#include "event-reporter/shards/lease_owner.hpp"
#include "k8s-client/lease.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::ObjectKey;
using k8s::PatchType;
using k8s::resources::kConfigMaps;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const k8s::Resource kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                 "CustomResourceDefinition", false};

// A client, with its resolver and metrics.
struct Caller {
  Caller(const Executor& executor, const k8s::ClusterConfig& config)
      : client(executor, resolver, config, {}, "contract-test") {}
  Metrics metrics;
  net::Resolver resolver{metrics};
  k8s::Client client;
};

// A case: its own client, with results as JSON.
class Fixture {
 public:
  Fixture(const Executor& executor, const KubeClientPeer& peer)
      : peer(peer), caller_(executor, peer.config), client(caller_.client) {}

  const KubeClientPeer& peer;

 private:
  Caller caller_;

 public:
  k8s::Client& client;

  [[nodiscard]] ObjectKey key(std::string name) const { return {peer.ns, std::move(name)}; }
  [[nodiscard]] Json config_map(const std::string& name, Json data = Json::object()) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"labels", {{"contract", "yes"}}}}},
            {"data", std::move(data)}};
  }
  Task<Json> create(Json object) {
    auto created = co_await client.create(kConfigMaps, peer.ns, object.dump(), soon());
    if (!created) {
      ADD_FAILURE() << created.error().message;
      co_return Json::object();
    }
    co_return Json::parse(*created);
  }
  Task<Json> get(std::string name) {
    auto found = co_await client.get(kConfigMaps, key(std::move(name)), soon());
    if (!found) {
      ADD_FAILURE() << found.error().message;
      co_return Json::object();
    }
    co_return Json::parse(*found);
  }
};

template <class T>
void expect_refusal(const Result<T>& result, ErrorCode code, int status) {
  if (result) {
    ADD_FAILURE() << "accepted, expected " << status;
    return;
  }
  EXPECT_EQ(to_string(result.error().code), to_string(code)) << result.error().message;
  EXPECT_EQ(result.error().http_status, status) << result.error().message;
}

Task<> creates_and_gets(Fixture& fixture) {
  const Json created = co_await fixture.create(fixture.config_map("one", {{"k", "v"}}));
  EXPECT_EQ(created["metadata"]["namespace"], fixture.peer.ns);
  EXPECT_FALSE(created["metadata"]["uid"].get<std::string>().empty());
  EXPECT_FALSE(created["metadata"]["resourceVersion"].get<std::string>().empty());
  EXPECT_EQ(co_await fixture.get("one"), created);
}

Task<> tells_what_is_missing(Fixture& fixture) {
  const auto missing = co_await fixture.client.get(kConfigMaps, fixture.key("nobody"), soon());
  expect_refusal(missing, ErrorCode::not_found, 404);
  EXPECT_THAT(missing.error().message, HasSubstr("404 NotFound: configmaps \"nobody\" not found"));
  EXPECT_THAT(missing.error().message,
              StartsWith("get configmaps " + fixture.peer.ns + "/nobody at "));
  expect_refusal(co_await fixture.client.get(kConfigMaps, fixture.key("a/../b?c"), soon()),
                 ErrorCode::not_found, 404);
  // An API server has no Status for a group that it does not serve.
  expect_refusal(co_await fixture.client.raw({.target = "/apis/nowhere.example/v1/things"}, soon()),
                 ErrorCode::unavailable, 404);
}

Task<> refuses_a_second_of_the_same_name(Fixture& fixture) {
  co_await fixture.create(fixture.config_map("twin"));
  const auto again = co_await fixture.client.create(kConfigMaps, fixture.peer.ns,
                                                    fixture.config_map("twin").dump(), soon());
  expect_refusal(again, ErrorCode::conflict, 409);
  EXPECT_THAT(again.error().message, HasSubstr("409 AlreadyExists"));
}

Task<> lists_in_pages(Fixture& fixture) {
  for (int i = 0; i < 5; ++i)
    co_await fixture.create(fixture.config_map("page-" + std::to_string(i)));
  Json other = fixture.config_map("other");
  other["metadata"]["labels"] = {{"contract", "no"}};
  co_await fixture.create(other);

  k8s::ListOptions options;
  options.label_selector = "contract in (yes,maybe),!hidden";
  options.limit = 2;
  std::vector<std::size_t> sizes;
  std::set<std::string> names;
  std::set<std::string> versions;
  do {
    auto text = co_await fixture.client.list(kConfigMaps, fixture.peer.ns, options, soon());
    CO_ASSERT_OK(text);
    const Json page = Json::parse(*text);
    EXPECT_EQ(page["kind"], "ConfigMapList");
    sizes.push_back(page["items"].size());
    for (const Json& item : page["items"]) names.insert(item["metadata"]["name"]);
    versions.insert(page["metadata"]["resourceVersion"]);
    options.continue_token = page["metadata"].value("continue", "");
  } while (!options.continue_token.empty() && sizes.size() < 10);
  EXPECT_THAT(sizes, testing::ElementsAre(2, 2, 1));
  EXPECT_THAT(names, testing::ElementsAre("page-0", "page-1", "page-2", "page-3", "page-4"));
  EXPECT_EQ(versions.size(), 1U) << "all pages are of one moment";
}

Task<> selects_by_field(Fixture& fixture) {
  co_await fixture.create(fixture.config_map("wanted"));
  co_await fixture.create(fixture.config_map("unwanted"));
  k8s::ListOptions options;
  options.field_selector = "metadata.name=wanted";
  const auto text = co_await fixture.client.list(kConfigMaps, "", options, soon());
  CO_ASSERT_OK(text);
  const Json list = Json::parse(*text);
  CO_ASSERT_EQ(list["items"].size(), 1U);
  EXPECT_EQ(list["items"][0]["metadata"]["namespace"], fixture.peer.ns);
  options.field_selector = "data.k=v";
  expect_refusal(co_await fixture.client.list(kConfigMaps, "", options, soon()),
                 ErrorCode::invalid_argument, 400);
}

Task<> refuses_a_garbled_continue_token(Fixture& fixture) {
  k8s::ListOptions options;
  options.continue_token = "garbage";
  expect_refusal(co_await fixture.client.list(kConfigMaps, fixture.peer.ns, options, soon()),
                 ErrorCode::invalid_argument, 400);
}

Task<> replaces_only_the_version_it_was_shown(Fixture& fixture) {
  const Json first = co_await fixture.create(fixture.config_map("doc", {{"n", "1"}}));
  Json second = first;
  second["data"]["n"] = "2";
  const auto updated =
      co_await fixture.client.update(kConfigMaps, fixture.key("doc"), second.dump(), soon());
  CO_ASSERT_OK(updated);
  EXPECT_NE(Json::parse(*updated)["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"]);
  const auto stale =
      co_await fixture.client.update(kConfigMaps, fixture.key("doc"), second.dump(), soon());
  expect_refusal(stale, ErrorCode::conflict, 409);
  EXPECT_THAT(stale.error().message, HasSubstr("409 Conflict"));
  EXPECT_EQ((co_await fixture.get("doc"))["data"]["n"], "2");

  expect_refusal(co_await fixture.client.update(kConfigMaps, fixture.key("absent"),
                                                fixture.config_map("absent").dump(), soon()),
                 ErrorCode::not_found, 404);
}

Task<> merges_patches(Fixture& fixture) {
  co_await fixture.create(fixture.config_map("doc", {{"a", "1"}, {"b", "2"}}));
  const auto patched = co_await fixture.client.patch(
      kConfigMaps, fixture.key("doc"), PatchType::merge, R"({"data":{"a":null,"c":"3"}})", soon());
  CO_ASSERT_OK(patched);
  EXPECT_EQ(Json::parse(*patched)["data"], (Json{{"b", "2"}, {"c", "3"}}));
  expect_refusal(co_await fixture.client.patch(kConfigMaps, fixture.key("doc"), PatchType::merge,
                                               R"({"metadata":{"resourceVersion":"1"}})", soon()),
                 ErrorCode::conflict, 409);
  expect_refusal(co_await fixture.client.patch(kConfigMaps, fixture.key("doc"), PatchType::merge,
                                               "{not json", soon()),
                 ErrorCode::invalid_argument, 400);
  expect_refusal(co_await fixture.client.patch(kConfigMaps, fixture.key("absent"), PatchType::merge,
                                               "{}", soon()),
                 ErrorCode::not_found, 404);
}

Task<> applies_json_patches(Fixture& fixture) {
  co_await fixture.create(fixture.config_map("doc", {{"a", "1"}}));
  const auto patched = co_await fixture.client.patch(
      kConfigMaps, fixture.key("doc"), PatchType::json,
      R"([{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/data/a","value":"2"},
          {"op":"add","path":"/metadata/annotations","value":{"x/y":"1"}},
          {"op":"replace","path":"/metadata/annotations/x~1y","value":"2"}])",
      soon());
  CO_ASSERT_OK(patched);
  const Json object = Json::parse(*patched);
  EXPECT_EQ(object["data"]["a"], "2");
  EXPECT_EQ(object["metadata"]["annotations"]["x/y"], "2");
  expect_refusal(
      co_await fixture.client.patch(kConfigMaps, fixture.key("doc"), PatchType::json,
                                    R"([{"op":"test","path":"/data/a","value":"other"}])", soon()),
      ErrorCode::invalid_argument, 422);
}

Task<> applies_on_the_server_side(Fixture& fixture) {
  const auto apply = [&](Json data) -> Task<Result<std::string>> {
    Json object = fixture.config_map("applied", std::move(data));
    co_return co_await fixture.client.patch(kConfigMaps, fixture.key("applied"), PatchType::apply,
                                            object.dump(), soon(),
                                            {.field_manager = "contract", .force = true});
  };
  const auto created = co_await apply({{"a", "1"}});
  CO_ASSERT_OK(created);
  const auto updated = co_await apply({{"a", "2"}, {"b", "3"}});
  CO_ASSERT_OK(updated);
  const Json object = Json::parse(*updated);
  EXPECT_EQ(object["data"], (Json{{"a", "2"}, {"b", "3"}}));
  EXPECT_EQ(object["metadata"]["uid"], Json::parse(*created)["metadata"]["uid"]);
}

Task<> deletes(Fixture& fixture) {
  const Json created = co_await fixture.create(fixture.config_map("doomed"));
  expect_refusal(co_await fixture.client.remove(kConfigMaps, fixture.key("doomed"), soon(),
                                                {.uid = "00000000-0000-0000-0000-000000000000"}),
                 ErrorCode::conflict, 409);
  CO_ASSERT_OK(co_await fixture.client.remove(kConfigMaps, fixture.key("doomed"), soon(),
                                              {.uid = created["metadata"]["uid"]}));
  expect_refusal(co_await fixture.client.get(kConfigMaps, fixture.key("doomed"), soon()),
                 ErrorCode::not_found, 404);
  expect_refusal(co_await fixture.client.remove(kConfigMaps, fixture.key("doomed"), soon()),
                 ErrorCode::not_found, 404);
}

Task<> tells_reasons_of_a_conflict_apart(Fixture& fixture) {
  const Json first = co_await fixture.create(fixture.config_map("doc", {{"n", "1"}}));
  const auto again = co_await fixture.client.create(kConfigMaps, fixture.peer.ns,
                                                    fixture.config_map("doc").dump(), soon());
  expect_refusal(again, ErrorCode::conflict, 409);
  EXPECT_EQ(again.error().reason, k8s::reasons::kAlreadyExists);
  Json second = first;
  second["data"]["n"] = "2";
  CO_ASSERT_OK(
      co_await fixture.client.update(kConfigMaps, fixture.key("doc"), second.dump(), soon()));
  const auto stale =
      co_await fixture.client.update(kConfigMaps, fixture.key("doc"), second.dump(), soon());
  expect_refusal(stale, ErrorCode::conflict, 409);
  EXPECT_EQ(stale.error().reason, k8s::reasons::kConflict);
  const auto absent = co_await fixture.client.get(kConfigMaps, fixture.key("absent"), soon());
  expect_refusal(absent, ErrorCode::not_found, 404);
  EXPECT_EQ(absent.error().reason, "NotFound");
}

Task<> answers_dry_runs_without_a_change(Fixture& fixture) {
  const auto made = co_await fixture.client.create(
      kConfigMaps, fixture.peer.ns, fixture.config_map("doc").dump(), soon(), {.dry_run = true});
  CO_ASSERT_OK(made);
  EXPECT_EQ(Json::parse(*made)["metadata"]["name"], "doc");
  expect_refusal(co_await fixture.client.get(kConfigMaps, fixture.key("doc"), soon()),
                 ErrorCode::not_found, 404);

  const Json before = co_await fixture.create(fixture.config_map("doc", {{"n", "1"}}));
  Json changed = before;
  changed["data"]["n"] = "2";
  const auto updated = co_await fixture.client.update(kConfigMaps, fixture.key("doc"),
                                                      changed.dump(), soon(), {.dry_run = true});
  CO_ASSERT_OK(updated);
  EXPECT_EQ(Json::parse(*updated)["data"]["n"], "2");
  const auto patched =
      co_await fixture.client.patch(kConfigMaps, fixture.key("doc"), PatchType::merge,
                                    R"({"data":{"n":"3"}})", soon(), {.dry_run = true});
  CO_ASSERT_OK(patched);
  EXPECT_EQ(Json::parse(*patched)["data"]["n"], "3");
  CO_ASSERT_OK(
      co_await fixture.client.remove(kConfigMaps, fixture.key("doc"), soon(), {.dry_run = true}));
  EXPECT_EQ(co_await fixture.get("doc"), before);
}

// "Update by me" of each entry of the managed fields.
std::set<std::string> managers_of(const Json& object) {
  std::set<std::string> out;
  for (const Json& entry : object["metadata"].value("managedFields", Json::array())) {
    out.insert(entry.value("operation", "") + " by " + entry.value("manager", ""));
  }
  return out;
}

Task<> remembers_the_field_manager(Fixture& fixture) {
  const auto created = co_await fixture.client.create(kConfigMaps, fixture.peer.ns,
                                                      fixture.config_map("made").dump(), soon(),
                                                      {.field_manager = "contract-maker"});
  CO_ASSERT_OK(created);
  EXPECT_TRUE(managers_of(Json::parse(*created)).contains("Update by contract-maker"));
  const auto applied = co_await fixture.client.patch(
      kConfigMaps, fixture.key("applied"), PatchType::apply, fixture.config_map("applied").dump(),
      soon(), {.field_manager = "contract-applier"});
  CO_ASSERT_OK(applied);
  EXPECT_TRUE(managers_of(Json::parse(*applied)).contains("Apply by contract-applier"));
}

Task<> deletes_under_preconditions(Fixture& fixture) {
  const Json first = co_await fixture.create(fixture.config_map("doc", {{"n", "1"}}));
  Json second = first;
  second["data"]["n"] = "2";
  CO_ASSERT_OK(
      co_await fixture.client.update(kConfigMaps, fixture.key("doc"), second.dump(), soon()));
  const std::string version = first["metadata"]["resourceVersion"];
  const auto stale = co_await fixture.client.remove(kConfigMaps, fixture.key("doc"), soon(),
                                                    {.resource_version = version});
  expect_refusal(stale, ErrorCode::conflict, 409);
  EXPECT_EQ(stale.error().reason, k8s::reasons::kConflict);
  const Json now = co_await fixture.get("doc");
  CO_ASSERT_OK(co_await fixture.client.remove(
      kConfigMaps, fixture.key("doc"), soon(),
      {.uid = now["metadata"]["uid"], .resource_version = now["metadata"]["resourceVersion"]}));
  expect_refusal(co_await fixture.client.get(kConfigMaps, fixture.key("doc"), soon()),
                 ErrorCode::not_found, 404);
}

Task<> deletes_collections(Fixture& fixture) {
  for (const char* name : {"one", "two", "three"})
    co_await fixture.create(fixture.config_map(name));
  Json other = fixture.config_map("other");
  other["metadata"]["labels"] = {{"contract", "no"}};
  co_await fixture.create(other);
  const auto names = [&]() -> Task<std::set<std::string>> {
    std::set<std::string> out;
    const auto text = co_await fixture.client.list(kConfigMaps, fixture.peer.ns, {}, soon());
    const Json list = Json::parse(text.value_or("{}"));
    for (const Json& item : list["items"]) {
      // A real cluster puts a ConfigMap with its certificate authority into each namespace.
      if (item["metadata"]["name"] != "kube-root-ca.crt") out.insert(item["metadata"]["name"]);
    }
    co_return out;
  };
  CO_ASSERT_OK(co_await fixture.client.remove_all(
      kConfigMaps, fixture.peer.ns, {.labels = "contract=yes"}, soon(), {.dry_run = true}));
  EXPECT_EQ((co_await names()).size(), 4U);
  CO_ASSERT_OK(co_await fixture.client.remove_all(
      kConfigMaps, fixture.peer.ns, {.labels = "contract=yes", .fields = "metadata.name!=two"},
      soon()));
  EXPECT_THAT(co_await names(), testing::ElementsAre("other", "two"));
}

Task<> streams_pod_logs(Fixture& fixture) {
  const Json pod{{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", "talker"}}},
                 {"spec", {{"containers", {{{"name", "main"}, {"image", "example/talker:1"}}}}}}};
  CO_ASSERT_OK(
      co_await fixture.client.create(k8s::resources::kPods, fixture.peer.ns, pod.dump(), soon()));
  const auto read = [&](k8s::LogOptions options) -> Task<Result<std::string>> {
    const Deadline deadline = soon();
    auto log = co_await fixture.client.log(fixture.key("talker"), options, deadline);
    if (!log) co_return std::unexpected(log.error());
    log->set_deadline(deadline);
    std::string text;
    while (true) {
      auto part = co_await log->read_some();
      if (!part) co_return std::unexpected(part.error());
      if (part->empty()) co_return text;
      text += *part;
    }
  };
  // The log of a pod that has no node yet is empty, and one that has not started yet has no log.
  auto whole = co_await read({});
  for (const Deadline deadline = soon(); (!whole || whole->empty()) && Clock::now() < deadline;) {
    co_await sleep_for(50ms);
    whole = co_await read({});
  }
  CO_ASSERT_OK(whole);
  EXPECT_THAT(*whole, HasSubstr("hello from a simulated pod\n"));
  const auto last = co_await read({.container = "main", .tail_lines = 1});
  CO_ASSERT_OK(last);
  EXPECT_EQ(std::ranges::count(*last, '\n'), 1);
  const auto short_one = co_await read({.limit_bytes = 5});
  CO_ASSERT_OK(short_one);
  EXPECT_EQ(short_one->size(), 5U);

  auto following = co_await fixture.client.log(fixture.key("talker"), {.follow = true}, soon());
  CO_ASSERT_OK(following);
  following->set_deadline(soon());
  const auto first = co_await following->read_some();
  CO_ASSERT_OK(first);
  EXPECT_FALSE(first->empty());

  expect_refusal(co_await fixture.client.log(fixture.key("talker"), {.container = "other"}, soon()),
                 ErrorCode::invalid_argument, 400);
  expect_refusal(co_await fixture.client.log(fixture.key("nobody"), {}, soon()),
                 ErrorCode::not_found, 404);
}

Task<> describes_its_types(Fixture& fixture) {
  const auto discovery = co_await fixture.client.discover(soon());
  CO_ASSERT_OK(discovery);
  using Answer = k8s::Discovery::Answer;
  for (const k8s::Resource& type :
       {kConfigMaps, k8s::resources::kDeployments, k8s::resources::kApplications,
        k8s::resources::kLeases, kDefinitions, k8s::resources::kSelfSubjectAccessReviews}) {
    EXPECT_EQ(discovery->find(type), Answer::served) << type.full_name();
    const auto* found = discovery->find_kind(type.group, type.kind);
    CO_ASSERT_TRUE(found != nullptr);
    EXPECT_EQ(found->resource.plural, type.plural);
    EXPECT_EQ(found->resource.version, type.version);
    EXPECT_EQ(found->resource.namespaced, type.namespaced);
    EXPECT_THAT(found->verbs, testing::Contains("create"));
  }
  EXPECT_THAT(discovery->find_kind("", "ConfigMap")->short_names, testing::Contains("cm"));
  EXPECT_THAT(discovery->find_kind("", "ServiceAccount")->subresources, testing::Contains("token"));
  EXPECT_EQ(discovery->find({"nowhere.example", "v1", "things", "Thing", true}), Answer::absent);
  EXPECT_EQ(discovery->find({"apps", "v1", "things", "Thing", true}), Answer::absent);
}

Task<> keeps_status_apart_and_learns_of_new_types(Fixture& fixture) {
  const k8s::Resource widgets{fixture.peer.ns + ".contract.example", "v1", "widgets", "Widget",
                              true};
  const auto before = co_await fixture.client.exists(widgets, soon());
  CO_ASSERT_OK(before);
  EXPECT_FALSE(*before);
  const auto core = co_await fixture.client.exists(kConfigMaps, soon());
  CO_ASSERT_OK(core);
  EXPECT_TRUE(*core);

  const Json open{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const Json definition{
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", {{"name", "widgets." + widgets.group}}},
      {"spec",
       {{"group", widgets.group},
        {"scope", "Namespaced"},
        {"names",
         {{"plural", "widgets"},
          {"singular", "widget"},
          {"kind", "Widget"},
          {"listKind", "WidgetList"}}},
        {"versions",
         Json::array({{{"name", "v1"},
                       {"served", true},
                       {"storage", true},
                       {"subresources", {{"status", Json::object()}}},
                       {"schema",
                        {{"openAPIV3Schema",
                          {{"type", "object"},
                           {"properties", {{"spec", open}, {"status", open}}}}}}}}})}}}};
  CO_ASSERT_OK(co_await fixture.client.create(kDefinitions, "", definition.dump(), soon()));
  const Deadline deadline = soon();
  bool known = false;
  while (!known && Clock::now() < deadline) {
    const auto now = co_await fixture.client.exists(widgets, deadline);
    known = now.value_or(false);  // the list of groups may be ahead of the type
    if (!known) co_await sleep_for(20ms);
  }
  CO_ASSERT_TRUE(known);

  const Json widget{{"apiVersion", widgets.api_version()},
                    {"kind", "Widget"},
                    {"metadata", {{"name", "w"}}},
                    {"spec", {{"size", 1}}},
                    {"status", {{"phase", "Ignored"}}}};
  Result<std::string> text;
  do {  // discovery may be ahead of the storage
    text = co_await fixture.client.create(widgets, fixture.peer.ns, widget.dump(), deadline);
    if (!text) co_await sleep_for(20ms);
  } while (!text && Clock::now() < deadline);
  CO_ASSERT_OK(text);
  EXPECT_FALSE(Json::parse(*text).contains("status")) << "create leaves the status out";

  const std::string both = R"({"spec":{"size":2},"status":{"phase":"Done"}})";
  text = co_await fixture.client.patch(widgets, fixture.key("w"), PatchType::merge, both, soon(),
                                       {.subresource = "status"});
  CO_ASSERT_OK(text);
  Json object = Json::parse(*text);
  EXPECT_EQ(object["spec"]["size"], 1);
  EXPECT_EQ(object["status"]["phase"], "Done");

  object["spec"]["size"] = 3;
  object["status"]["phase"] = "Changed";
  text = co_await fixture.client.update(widgets, fixture.key("w"), object.dump(), soon());
  CO_ASSERT_OK(text);
  object = Json::parse(*text);
  EXPECT_EQ(object["spec"]["size"], 3);
  EXPECT_EQ(object["status"]["phase"], "Done");

  object["status"]["phase"] = "Again";
  text = co_await fixture.client.update(widgets, fixture.key("w"), object.dump(), soon(),
                                        {.subresource = "status"});
  CO_ASSERT_OK(text);
  EXPECT_EQ(Json::parse(*text)["status"]["phase"], "Again");

  CO_ASSERT_OK(
      co_await fixture.client.remove(kDefinitions, {"", "widgets." + widgets.group}, soon()));
}

Task<> lists_applications(Fixture& fixture) {
  const auto served = co_await fixture.client.exists(k8s::resources::kApplications, soon());
  CO_ASSERT_OK(served);
  EXPECT_TRUE(*served);
  const Json application{
      {"apiVersion", "argoproj.io/v1alpha1"},
      {"kind", "Application"},
      {"metadata", {{"name", "guestbook"}}},
      {"spec",
       {{"project", "default"},
        {"source", {{"repoURL", "https://git.example/r"}, {"path", "."}}},
        {"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", "x"}}}}}};
  CO_ASSERT_OK(co_await fixture.client.create(k8s::resources::kApplications, fixture.peer.ns,
                                              application.dump(), soon()));
  const auto text =
      co_await fixture.client.list(k8s::resources::kApplications, fixture.peer.ns, {}, soon());
  CO_ASSERT_OK(text);
  const Json list = Json::parse(*text);
  CO_ASSERT_EQ(list["items"].size(), 1U);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "guestbook");
  EXPECT_EQ(list["items"][0]["spec"], application["spec"]);
}

Task<> watches(Fixture& fixture) {
  const auto list = co_await fixture.client.list(kConfigMaps, fixture.peer.ns, {}, soon());
  CO_ASSERT_OK(list);
  k8s::WatchOptions options;
  options.resource_version = Json::parse(*list)["metadata"]["resourceVersion"];
  options.label_selector = "contract=yes";
  auto stream = co_await fixture.client.watch(kConfigMaps, fixture.peer.ns, options, soon());
  CO_ASSERT_OK(stream);
  const Json created = co_await fixture.create(fixture.config_map("seen"));
  std::string text;
  stream->set_deadline(soon());
  while (!text.contains("\"ADDED\"") || !text.ends_with('\n')) {
    const auto part = co_await stream->read_some();
    CO_ASSERT_OK(part);
    CO_ASSERT_TRUE(!part->empty());
    text += *part;
  }
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  const Json event = Json::parse(last);
  EXPECT_EQ(event["type"], "ADDED");
  EXPECT_EQ(event["object"], created);
}

Task<> reviews_access(Fixture& fixture) {
  const k8s::Client::Access delete_maps{
      .verb = "delete", .group = "", .resource = "configmaps", .ns = fixture.peer.ns};
  const auto mine = co_await fixture.client.can_i(delete_maps, soon());
  CO_ASSERT_OK(mine);
  EXPECT_TRUE(*mine);
  const auto one = co_await fixture.client.can_i({.verb = "update",
                                                  .group = "apps",
                                                  .resource = "deployments",
                                                  .subresource = "scale",
                                                  .ns = fixture.peer.ns,
                                                  .name = "web"},
                                                 soon());
  CO_ASSERT_OK(one);
  EXPECT_TRUE(*one);
  auto everywhere = delete_maps;
  everywhere.ns.clear();
  CO_ASSERT_OK(co_await fixture.client.can_i(everywhere, soon()));

  Caller other(co_await asio::this_coro::executor, fixture.peer.powerless);
  const auto theirs = co_await other.client.can_i(delete_maps, soon());
  CO_ASSERT_OK(theirs);
  EXPECT_FALSE(*theirs);
  const auto refused = co_await other.client.list(kConfigMaps, fixture.peer.ns, {}, soon());
  expect_refusal(refused, ErrorCode::forbidden, 403);
  EXPECT_THAT(refused.error().message, HasSubstr("403 Forbidden: configmaps is forbidden: User "));
  expect_refusal(co_await other.client.watch(kConfigMaps, fixture.peer.ns, {}, soon()),
                 ErrorCode::forbidden, 403);
}

Task<> refuses_unknown_tokens(Fixture& fixture) {
  Caller stranger(co_await asio::this_coro::executor, fixture.peer.unknown);
  const auto refused = co_await stranger.client.list(kConfigMaps, fixture.peer.ns, {}, soon());
  expect_refusal(refused, ErrorCode::unauthenticated, 401);
  EXPECT_THAT(refused.error().message, HasSubstr("401 Unauthorized"));
  expect_refusal(co_await stranger.client.watch(kConfigMaps, fixture.peer.ns, {}, soon()),
                 ErrorCode::unauthenticated, 401);
  // Also for a path that needs no permissions.
  expect_refusal(co_await stranger.client.raw({.target = "/version"}, soon()),
                 ErrorCode::unauthenticated, 401);
  expect_refusal(
      co_await stranger.client.can_i({.verb = "get", .group = "", .resource = "pods"}, soon()),
      ErrorCode::unauthenticated, 401);
  expect_refusal(co_await stranger.client.who_am_i(soon()), ErrorCode::unauthenticated, 401);
}

Task<> issues_tokens(Fixture& fixture) {
  const Json account{
      {"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "robot"}}}};
  CO_ASSERT_OK(co_await fixture.client.create(k8s::resources::kServiceAccounts, fixture.peer.ns,
                                              account.dump(), soon()));
  const auto token = co_await fixture.client.request_token(fixture.key("robot"), {}, 600s, soon());
  CO_ASSERT_OK(token);
  EXPECT_FALSE(token->token.empty());
  EXPECT_GT(token->expires, wall_now() + 500s);
  EXPECT_LT(token->expires, wall_now() + 700s);

  k8s::ClusterConfig config = fixture.peer.unknown;
  config.token = token->token;
  Caller robot(co_await asio::this_coro::executor, config);
  CO_ASSERT_OK(co_await robot.client.can_i(
      {.verb = "get", .group = "", .resource = "configmaps", .ns = fixture.peer.ns}, soon()));
  const auto user = co_await robot.client.who_am_i(soon());
  CO_ASSERT_OK(user);
  EXPECT_EQ(*user, "system:serviceaccount:" + fixture.peer.ns + ":robot");

  expect_refusal(co_await fixture.client.request_token(fixture.key("nobody"), {}, 600s, soon()),
                 ErrorCode::not_found, 404);
}

Task<> tells_its_version(Fixture& fixture) {
  const auto text = co_await fixture.client.raw({.target = "/version"}, soon());
  CO_ASSERT_OK(text);
  EXPECT_THAT(Json::parse(*text).value("gitVersion", ""), StartsWith("v1."));
  const auto version = co_await fixture.client.server_version(soon());
  CO_ASSERT_OK(version);
  EXPECT_EQ(version->major, 1U);
  EXPECT_GE(version->minor, 20U);
  EXPECT_EQ(version->git_version, Json::parse(*text).value("gitVersion", ""));
}

// Waits for the condition; false after a timeout.
Task<bool> comes_true(std::function<bool()> condition) {
  co_return static_cast<bool>(co_await eventually(std::move(condition), "the condition"));
}

// A candidate for the Lease of the case. Its times leave a slow server room to answer.
struct Candidate {
  Candidate(const Executor& executor, const KubeClientPeer& peer, const std::string& name)
      : caller(executor, peer.config),
        group(executor),
        election(caller.client,
                 {.key = {peer.ns, "leader"},
                  .identity = name,
                  .lease_duration = 15s,
                  .renew_deadline = 10s,
                  .retry_period = 500ms},
                 [](bool) {}) {
    election.start(group);
  }
  Task<> stop() {
    group.cancel();
    co_await group.join();
  }
  Task<bool> leads() {
    return comes_true([this] { return election.leading(); });
  }

  Caller caller;
  TaskGroup group;
  k8s::LeaseElection election;
};

Task<> elects_one_leader(Fixture& fixture) {
  const auto executor = co_await asio::this_coro::executor;
  Candidate first(executor, fixture.peer, "first");
  const bool first_led = co_await first.leads();
  Candidate second(executor, fixture.peer, "second");
  EXPECT_TRUE(co_await comes_true([&] { return second.election.holder() == "first"; }));
  EXPECT_TRUE(first_led);
  EXPECT_TRUE(first.election.leading());
  EXPECT_FALSE(second.election.leading());
  co_await first.stop();
  EXPECT_TRUE(co_await second.leads());
  const auto text =
      co_await fixture.client.get(k8s::resources::kLeases, fixture.key("leader"), soon());
  co_await second.stop();
  CO_ASSERT_OK(text);
  const Json spec = Json::parse(*text)["spec"];
  EXPECT_EQ(spec["holderIdentity"], "second");
  EXPECT_EQ(spec["leaseTransitions"], 1);
}

Task<> hands_a_lease_back_to_its_owner(Fixture& fixture) {
  const auto executor = co_await asio::this_coro::executor;
  struct Work final : reporter::Failover::Observer {
    void on_change(std::size_t lease, bool held) override {
      told = held ? std::optional(lease) : std::nullopt;
    }
    [[nodiscard]] bool busy(std::size_t) const override { return false; }
    std::optional<std::size_t> told;
  } work;
  const auto& told = work.told;
  reporter::Failover failover(fixture.client,
                              {.ns = fixture.peer.ns,
                               .leases = {{.name = "other"}, {.name = "owned"}},
                               .identity = "neighbour",
                               .lease_duration = 6s,
                               .renew_deadline = 4s,
                               .retry_period = 500ms,
                               .rank_delay = 0ms},
                              work);
  // The holder of one Lease no longer renews it; the other Lease is valid throughout.
  const auto lease = [&](const std::string& name, int seconds) {
    return Json{
        {"apiVersion", "coordination.k8s.io/v1"},
        {"kind", "Lease"},
        {"metadata", {{"name", name}, {"namespace", fixture.peer.ns}}},
        {"spec",
         {{"holderIdentity", "gone"}, {"leaseDurationSeconds", seconds}, {"leaseTransitions", 4}}}}
        .dump();
  };
  CO_ASSERT_OK(co_await fixture.client.create(k8s::resources::kLeases, fixture.peer.ns,
                                              lease("other", 60), soon()));
  CO_ASSERT_OK(co_await fixture.client.create(k8s::resources::kLeases, fixture.peer.ns,
                                              lease("owned", 1), soon()));
  TaskGroup group(executor);
  failover.start(group);
  EXPECT_TRUE(co_await comes_true([&] { return failover.held() == 1U; }));
  EXPECT_EQ(told, 1U);
  EXPECT_EQ(failover.lease(1).record().transitions, 5);

  TaskGroup owners(executor);
  reporter::LeaseOwner owner(fixture.client,
                             {.key = fixture.key("owned"),
                              .identity = "owner",
                              .lease_duration = 6s,
                              .renew_deadline = 4s,
                              .retry_period = 500ms},
                             [&](bool) { EXPECT_FALSE(failover.held()); });
  owner.start(owners);
  EXPECT_TRUE(co_await comes_true([&] { return owner.leading(); }));
  EXPECT_EQ(told, std::nullopt);
  EXPECT_EQ(owner.lease().record().transitions, 6);
  EXPECT_EQ(reporter::wanted_by(owner.lease()), "");
  EXPECT_EQ(owner.lease().uid(), failover.lease(1).uid());
  group.cancel();
  co_await group.join();
  EXPECT_TRUE(owner.leading());
  owners.cancel();
  co_await owners.join();
  const auto text =
      co_await fixture.client.get(k8s::resources::kLeases, fixture.key("owned"), soon());
  CO_ASSERT_OK(text);
  EXPECT_EQ(Json::parse(*text)["spec"].value("holderIdentity", ""), "");
}

KubeClientCase make_case(const char* name, Task<> (*run)(Fixture&)) {
  return {name, [run](const KubeClientPeer& peer) -> Task<> {
            Fixture fixture(co_await asio::this_coro::executor, peer);
            co_await run(fixture);
          }};
}

}  // namespace

std::vector<KubeClientCase> kube_client_cases() {
  return {
      make_case("CreatesAndGets", creates_and_gets),
      make_case("TellsWhatIsMissing", tells_what_is_missing),
      make_case("RefusesASecondOfTheSameName", refuses_a_second_of_the_same_name),
      make_case("ListsInPages", lists_in_pages),
      make_case("SelectsByField", selects_by_field),
      make_case("RefusesAGarbledContinueToken", refuses_a_garbled_continue_token),
      make_case("ReplacesOnlyTheVersionItWasShown", replaces_only_the_version_it_was_shown),
      make_case("MergesPatches", merges_patches),
      make_case("AppliesJsonPatches", applies_json_patches),
      make_case("AppliesOnTheServerSide", applies_on_the_server_side),
      make_case("Deletes", deletes),
      make_case("TellsReasonsOfAConflictApart", tells_reasons_of_a_conflict_apart),
      make_case("AnswersDryRunsWithoutAChange", answers_dry_runs_without_a_change),
      make_case("RemembersTheFieldManager", remembers_the_field_manager),
      make_case("DeletesUnderPreconditions", deletes_under_preconditions),
      make_case("DeletesCollections", deletes_collections),
      make_case("StreamsPodLogs", streams_pod_logs),
      make_case("DescribesItsTypes", describes_its_types),
      make_case("KeepsStatusApartAndLearnsOfNewTypes", keeps_status_apart_and_learns_of_new_types),
      make_case("ListsApplications", lists_applications),
      make_case("Watches", watches),
      make_case("ReviewsAccess", reviews_access),
      make_case("RefusesUnknownTokens", refuses_unknown_tokens),
      make_case("IssuesTokens", issues_tokens),
      make_case("TellsItsVersion", tells_its_version),
      make_case("ElectsOneLeader", elects_one_leader),
      make_case("HandsALeaseBackToItsOwner", hands_a_lease_back_to_its_owner),
  };
}

}  // namespace gitops::test
