#include "doubles/event_checks.hpp"

#include <ctime>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "support/yaml_manifests.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;

constexpr const char* kAbsent = "(absent)";

Json get(const Json& object, const std::string& pointer, Json otherwise = kAbsent) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : std::move(otherwise);
}

Json parsed(const std::string& text) {
  auto json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json("not JSON: " + text) : json;
}

Json parsed_yaml(const std::string& text) {
  const auto documents = parse_manifests(text);
  if (!documents || documents->size() != 1) return "not one YAML document: " + text;
  return documents->front();
}

// Compares member by member, so that a failure names the member. Missing and extra members fail.
void expect_members(const Json& actual, const Json& expected, const std::string& what) {
  std::set<std::string> names;
  for (const auto* object : {&actual, &expected}) {
    for (const auto& [name, value] : object->items()) names.insert(name);
  }
  for (const auto& name : names) {
    const auto got = actual.value(name, Json(kAbsent));
    const auto wanted = expected.value(name, Json(kAbsent));
    EXPECT_TRUE(got == wanted) << what << "." << name << " is " << got.dump()
                               << "\nwhat makes it right: " << Json::diff(got, wanted).dump(2);
  }
}

constexpr const char* kMask = "(masked)";
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// A Secret with every value masked, also in kubectl's last-applied annotation.
Json masked(Json secret) {
  for (const auto& [key, value] : secret.value("stringData", Json::object()).items()) {
    secret["data"][key] = value;  // as the API server stores it
  }
  secret.erase("stringData");
  for (auto& [key, value] : secret["data"].items()) value = kMask;
  auto& annotations = secret["metadata"]["annotations"];
  if (annotations.contains(kLastApplied)) {
    annotations[kLastApplied] = masked(parsed(annotations[kLastApplied]));
  }
  return secret;
}

// A reported Secret in the same form: any string of plus signs is a mask.
Json with_masks(Json secret) {
  if (!secret.is_object()) return secret;
  for (auto& [key, value] : secret["data"].items()) {
    const auto text = value.is_string() ? value.get<std::string>() : std::string();
    if (!text.empty() && text.find_first_not_of('+') == std::string::npos) value = kMask;
  }
  auto& annotations = secret["metadata"]["annotations"];
  if (annotations.contains(kLastApplied)) {
    annotations[kLastApplied] = with_masks(parsed(annotations[kLastApplied]));
  }
  return secret;
}

Json last_history(const Json& application) {
  const auto history = get(application, "/status/history", Json::array());
  return history.empty() ? Json::object() : history.back();
}

// The list's entry for this object; null when there is none.
Json entry_of(const Json& entries, const Json& object) {
  const auto api_version = object.at("apiVersion").get<std::string>();
  const auto slash = api_version.find('/');
  const auto group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  for (const auto& entry : entries) {
    if (get(entry, "/group", "") == group && get(entry, "/kind") == object.at("kind") &&
        get(entry, "/namespace", "") == get(object, "/metadata/namespace", "") &&
        get(entry, "/name") == get(object, "/metadata/name")) {
      return entry;
    }
  }
  return nullptr;
}

void expect_frame(const FakePlatform::Report& report, const ApplicationFacts& facts) {
  std::set<std::string> members;
  for (const auto& [name, value] : report.data.items()) members.insert(name);
  EXPECT_EQ(members, (std::set<std::string>{"appVersions", "object", "source", "timestamp"}));
  EXPECT_EQ(report.data["appVersions"], Json::object());

  const auto timestamp = get(report.data, "/timestamp").get<std::string>();
  static const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  EXPECT_TRUE(std::regex_match(timestamp, form)) << timestamp;
  EXPECT_GE(timestamp.substr(0, 19), facts.not_before.substr(0, 19));
  EXPECT_LE(timestamp.substr(0, 19), utc_now().substr(0, 19));
}

// Fields that every event has with the same value or shape.
Json settings_of(const ApplicationFacts& facts) {
  return {{"path", ""},
          {"appInstanceLabelKey", facts.instance_label_key},
          {"trackingMethod", facts.tracking_method},
          {"cluster", get(facts.application, "/spec/destination/server")},
          {"syncStartedAt", get(facts.application, "/status/operationState/startedAt")}};
}

// Fields of an event about a resource of the application.
Json source_of_managed(const ApplicationFacts& facts) {
  const auto& app = facts.application;
  auto source = settings_of(facts);
  source.update(
      Json{{"repoURL", get(app, "/spec/source/repoURL")},
           {"revision", last_history(app).value("revision", get(app, "/status/sync/revision"))},
           {"commitMessage", facts.commit.message},
           {"commitAuthor", facts.commit.author},
           {"commitDate", facts.commit.date},
           {"appName", get(app, "/metadata/name")},
           {"appNamespace", get(app, "/metadata/namespace")},
           {"appUID", get(app, "/metadata/uid")},
           {"appLabels", get(app, "/metadata/labels", nullptr)},
           {"historyId", last_history(app).value("id", 0)},
           {"operationSyncRevision", facts.commit.id}});
  return source;
}

}  // namespace

CommitFacts CommitFacts::read(const std::function<std::string(std::vector<std::string>)>& git,
                              const std::string& revision) {
  const auto show = [&](const std::string& format) {
    auto text = git({"show", "--no-patch", "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
                     "--format=" + format, revision});
    while (text.ends_with('\n')) text.pop_back();
    return text;
  };
  return {
      .id = show("%H"), .author = show("%an <%ae>"), .message = show("%B"), .date = show("%cd")};
}

std::string utc_now() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

nlohmann::json desired_state(Json manifest, const Json& application,
                             const std::string& tracking_method) {
  const auto app = application.at("/metadata/name"_json_pointer).get<std::string>();
  const auto ns = application.at("/spec/destination/namespace"_json_pointer).get<std::string>();
  const auto api_version = manifest.at("apiVersion").get<std::string>();
  const auto slash = api_version.find('/');
  manifest["metadata"]["namespace"] = ns;
  if (tracking_method == "label") {
    manifest["metadata"]["labels"]["app.kubernetes.io/instance"] = app;
    return manifest;
  }
  manifest["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
      app + ":" + (slash == std::string::npos ? "" : api_version.substr(0, slash)) + "/" +
      manifest.at("kind").get<std::string>() + ":" + ns + "/" +
      manifest.at("/metadata/name"_json_pointer).get<std::string>();
  return manifest;
}

void expect_application_event(const FakePlatform::Report& report, const ApplicationFacts& facts) {
  const auto& app = facts.application;
  SCOPED_TRACE("the event of application " + get(app, "/metadata/name").dump());
  expect_frame(report, facts);

  // The Application with the facts about its commit in labels and annotations.
  auto object = report.object;
  const auto annotation = object["metadata"]["annotations"]["app.meta.revisions-metadata"];
  const auto revisions = parsed(annotation.is_string() ? annotation.get<std::string>() : "");
  EXPECT_EQ(get(revisions, "/changeRevisions"), nullptr);
  EXPECT_EQ(get(revisions, "/syncRevisions/0/revision"), facts.commit.id);
  EXPECT_EQ(get(revisions, "/syncRevisions/0/metadata/author"), facts.commit.author);
  EXPECT_EQ(get(revisions, "/syncRevisions/0/metadata/date"), facts.commit.date);
  EXPECT_EQ(get(revisions, "/syncRevisions/0/metadata/message"), facts.commit.message);
  EXPECT_EQ(get(revisions, "/syncRevisions/1"), kAbsent);
  auto expected = app;
  expected["metadata"]["annotations"]["app.meta.revisions-metadata"] = annotation;
  expected["metadata"]["labels"].update(
      Json{{"app.meta.commit-author", facts.commit.author},
           {"app.meta.commit-message", facts.commit.message},
           {"app.meta.commit-date",
            facts.commit.date.substr(0, facts.commit.date.size() - 1) + ".000Z"}});
  expect_members(object, expected, "object");

  auto source = settings_of(facts);
  source.update(Json{{"desiredManifest", ""},
                     {"actualManifest", expected},
                     {"gitManifest", ""},
                     {"repoURL", get(app, "/spec/source/repoURL")},
                     {"revision", ""},
                     {"commitMessage", ""},
                     {"commitAuthor", ""},
                     {"appName", ""},
                     {"appNamespace", ""},
                     {"appUID", ""},
                     {"appLabels", Json::object()},
                     {"historyId", 0},
                     {"operationSyncRevision", ""},
                     {"syncStatus", get(app, "/status/sync/status")},
                     {"syncFinishedAt", get(app, "/status/operationState/finishedAt")},
                     {"healthStatus", get(app, "/status/health/status")},
                     {"healthMessage", get(app, "/status/health/message", "")}});
  auto actual = report.data.at("source");
  const bool deleted = app.contains("/metadata/deletionTimestamp"_json_pointer);
  if (deleted) {
    source["actualManifest"] = "";
  } else {
    actual["actualManifest"] = parsed(report.source("actualManifest"));
  }
  expect_members(actual, source, "source");
}

void expect_resource_event(const FakePlatform::Report& report, const ApplicationFacts& facts,
                           const Json& desired, const Json& live) {
  SCOPED_TRACE("the event of " + desired.at("kind").dump() + " " +
               desired.at("/metadata/name"_json_pointer).dump());
  expect_frame(report, facts);
  auto actual = report.data.at("source");
  actual["desiredManifest"] = parsed(report.source("desiredManifest"));
  actual["actualManifest"] = parsed(report.source("actualManifest"));
  actual["gitManifest"] = parsed_yaml(report.source("gitManifest"));

  auto object = report.object;
  auto expected_desired = desired;
  auto expected_live = live;
  if (desired.at("kind") == "Secret") {
    expected_desired = masked(desired);
    expected_live = masked(live);
    object = with_masks(object);
    for (const auto* field : {"desiredManifest", "actualManifest", "gitManifest"}) {
      actual[field] = with_masks(actual[field]);
    }
  }
  const auto status = entry_of(get(facts.application, "/status/resources", Json::array()), live);
  const auto health =
      entry_of(get(facts.tree, "/nodes", Json::array()), live).value("health", Json::object());
  auto source = source_of_managed(facts);
  source.update(Json{{"desiredManifest", expected_desired},
                     {"actualManifest", expected_live},
                     {"gitManifest", expected_desired},
                     {"syncStatus", status.value("status", kAbsent)},
                     // An existing object of a kind without a health check counts as healthy.
                     {"healthStatus", health.value("status", "Healthy")},
                     {"healthMessage", health.value("message", "")}});
  // For a healthy, synced resource it holds the start of the sync.
  source["syncFinishedAt"] = source["syncStatus"] == "Synced" && source["healthStatus"] == "Healthy"
                                 ? source["syncStartedAt"]
                                 : get(facts.application, "/status/operationState/finishedAt");
  expect_members(actual, source, "source");
  expect_members(object, expected_live, "object");
}

void expect_gone_event(const FakePlatform::Report& report, const ApplicationFacts& facts) {
  SCOPED_TRACE("the last event of " + report.kind() + " " + report.name());
  expect_frame(report, facts);
  auto source = source_of_managed(facts);
  const auto& actual = report.data.at("source");
  for (const auto* field : {"desiredManifest", "actualManifest", "gitManifest"}) source[field] = "";
  // Events about deleted objects lack these fields.
  for (const auto* field : {"syncStatus", "syncFinishedAt", "healthStatus", "healthMessage"}) {
    if (actual.contains(field)) source[field] = actual.at(field);
  }
  expect_members(actual, source, "source");
}

}  // namespace gitops::test
