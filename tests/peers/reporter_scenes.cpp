#include "peers/reporter_scenes.hpp"

#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kNamespace = ReporterBed::kNamespace;

// Of an application of the five resources without the ConfigMap, whose events after number `first`
// must end with its end.
Task<> expect_all_gone(ReporterBed& reporter_bed, ReporterBed::App app, std::string uid,
                       std::size_t first) {
  for (const auto& [kind, name] :
       {std::pair("Application", app.name.c_str()), std::pair("Deployment", "web"),
        std::pair("Service", "web"), std::pair("Secret", "credentials"),
        std::pair("ServiceAccount", "shop")}) {
    if (co_await reporter_bed.gone(kind, name, first) == nullptr) {
      ADD_FAILURE() << kind << " " << name << " was not reported as gone";
      continue;
    }
    const auto* last = co_await reporter_bed.last(kind, name, first);
    for (const auto* field : {"desiredManifest", "actualManifest", "gitManifest"}) {
      EXPECT_EQ(last->source(field), "") << kind << " " << field;
    }
    if (kind == std::string_view("Application")) {
      EXPECT_EQ(last->object.at("/metadata/uid"_json_pointer), uid);
    } else {
      EXPECT_EQ(last->source("appUID"), uid) << kind;
      EXPECT_EQ(last->object.at("/metadata/namespace"_json_pointer), app.name);
    }
  }
}

}  // namespace

Task<> reports_an_application_and_its_resources(ReporterBed& reporter_bed) {
  co_await reporter_bed.start();
  const auto app = reporter_bed.make_repository("reported");
  const auto files = five_resources();
  const auto commit = co_await reporter_bed.commit(app, files, "first version\n\nof the shop");
  co_await reporter_bed.create(app);
  co_await reporter_bed.sync(app, commit.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, commit.id));

  const auto* root = co_await reporter_bed.last("Application", app.name);
  expect_application_event(*root, co_await reporter_bed.facts(app, *root, commit));
  for (const auto& [file, text] : files) {
    const auto manifest = manifest_of(text);
    const auto kind = manifest.at("kind").get<std::string>();
    const auto name = manifest.at("/metadata/name"_json_pointer).get<std::string>();
    const auto* report = co_await reporter_bed.last(kind, name);
    if (report == nullptr) {
      ADD_FAILURE() << "no event of " << kind << " " << name;
      continue;
    }
    const auto facts = co_await reporter_bed.facts(app, *report, commit);
    expect_resource_event(*report, facts,
                          desired_state(manifest, facts.application, facts.tracking_method),
                          co_await reporter_bed.live(app.name, kind, name));
    EXPECT_EQ(report->source("revision"), commit.id);
  }

  std::set<std::string> ids;
  for (const auto& report : reporter_bed.platform.reports()) {
    EXPECT_TRUE(ids.insert(report.event_id).second) << report.event_id;
    EXPECT_EQ(report.headers.find("Content-Encoding"), "gzip");
    EXPECT_EQ(report.headers.find("Authorization"), ReporterBed::kPlatformToken);
    EXPECT_THAT(report.data.dump() + report.object.dump(), Not(HasSubstr("canary")));
  }
  EXPECT_THAT(reporter_bed.platform.refused(), IsEmpty());
}

Task<> reports_a_commit(ReporterBed& reporter_bed) {
  co_await reporter_bed.start();
  const auto app = reporter_bed.make_repository("scaled");
  const auto first = co_await reporter_bed.commit(app, five_resources(), "two replicas");
  co_await reporter_bed.create(app);
  co_await reporter_bed.sync(app, first.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, first.id));

  const auto seen = reporter_bed.platform.reports().size();
  const auto second = co_await reporter_bed.commit(
      app, {{"web.yaml", deployment(3)}, {"settings.yaml", settings_map("red")}}, "three replicas");
  co_await reporter_bed.sync(app, second.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, second.id, seen));

  const auto* scaled = co_await reporter_bed.last("Deployment", "web", seen);
  CO_ASSERT_TRUE(scaled != nullptr);
  EXPECT_EQ(scaled->source("revision"), second.id);
  EXPECT_EQ(scaled->source("commitMessage"), "three replicas");
  EXPECT_EQ(scaled->source("commitAuthor"), "Dana Levi <dana@example.com>");
  for (const auto* manifest : {"desiredManifest", "actualManifest"}) {
    EXPECT_EQ(json::parse(scaled->source(manifest)).at("/spec/replicas"_json_pointer), 3);
  }
  EXPECT_THAT(scaled->source("gitManifest"), HasSubstr("\n  replicas: 3\n"));
  EXPECT_EQ(scaled->object.at("/status/readyReplicas"_json_pointer), 3);
  const auto facts = co_await reporter_bed.facts(app, *scaled, second);
  expect_resource_event(
      *scaled, facts,
      desired_state(manifest_of(deployment(3)), facts.application, facts.tracking_method),
      co_await reporter_bed.live(app.name, "Deployment", "web"));
  // What has no health to wait for is reported early, and yet with that commit.
  const auto* set = co_await reporter_bed.last("ConfigMap", "settings", seen);
  CO_ASSERT_TRUE(set != nullptr);
  EXPECT_EQ(set->source("revision"), second.id);
  const auto facts_then = co_await reporter_bed.facts(app, *set, second);
  expect_resource_event(*set, facts_then,
                        desired_state(manifest_of(settings_map("red")), facts_then.application,
                                      facts_then.tracking_method),
                        co_await reporter_bed.live(app.name, "ConfigMap", "settings"));
  // Nothing else of it has changed.
  for (std::size_t i = seen; i < reporter_bed.platform.reports().size(); ++i) {
    EXPECT_THAT(reporter_bed.platform.reports()[i].kind(),
                AnyOf("Application", "Deployment", "ConfigMap"));
  }
}

Task<> reports_what_is_removed(ReporterBed& reporter_bed) {
  co_await reporter_bed.start();
  const auto app = reporter_bed.make_repository("removed");
  const auto first = co_await reporter_bed.commit(app, five_resources(), "all of it");
  co_await reporter_bed.create(app);
  co_await reporter_bed.sync(app, first.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, first.id));

  // A resource leaves Git and is pruned.
  auto seen = reporter_bed.platform.reports().size();
  const auto second =
      co_await reporter_bed.commit(app, {{"settings.yaml", std::nullopt}}, "no settings any more");
  co_await reporter_bed.sync(app, second.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, second.id, seen));
  EXPECT_THAT(
      reporter_bed.bed.cluster().kubectl({"-n", app.name, "get", "configmap", "settings"}).err,
      HasSubstr("NotFound"));
  CO_ASSERT_TRUE(co_await reporter_bed.gone("ConfigMap", "settings", seen) != nullptr);
  const auto* gone = co_await reporter_bed.last("ConfigMap", "settings", seen);
  EXPECT_EQ(gone->object.at("apiVersion"), "v1");
  EXPECT_EQ(gone->object.at("/metadata/namespace"_json_pointer), app.name);
  expect_gone_event(*gone, co_await reporter_bed.facts(app, *gone, second));
  EXPECT_THAT(reporter_bed.platform.find("Secret", "credentials", seen), IsEmpty());

  // The application is deleted, with what is left of its resources.
  const auto uid = gone->data.at("/source/appUID"_json_pointer).get<std::string>();
  seen = reporter_bed.platform.reports().size();
  co_await reporter_bed.remove(app, "cascade=true");
  co_await expect_all_gone(reporter_bed, app, uid, seen);
  EXPECT_THAT(reporter_bed.platform.refused(), IsEmpty());
}

Task<> reports_an_application_removed_alone(ReporterBed& reporter_bed) {
  co_await reporter_bed.start();
  const auto app = reporter_bed.make_repository("left");
  const auto commit = co_await reporter_bed.commit(app, five_resources(), "all of it");
  co_await reporter_bed.create(app);
  co_await reporter_bed.sync(app, commit.id);
  CO_ASSERT_TRUE(co_await reporter_bed.settled(app, commit.id));

  const auto* root = co_await reporter_bed.last("Application", app.name);
  const auto uid = root->object.at("/metadata/uid"_json_pointer).get<std::string>();
  const auto seen = reporter_bed.platform.reports().size();
  co_await reporter_bed.remove(app, "cascade=false");
  co_await expect_all_gone(reporter_bed, app, uid, seen);
  const auto kept = co_await reporter_bed.live(app.name, "deployment", "web");
  EXPECT_FALSE(kept.contains("/metadata/deletionTimestamp"_json_pointer));
  EXPECT_THAT(reporter_bed.platform.refused(), IsEmpty());
}

Task<> reads_argocd_twice_per_event(ReporterBed& reporter_bed) {
  const auto config_map = [](int number, const std::string& content) {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-" + std::to_string(number) +
           "}\ndata: {content: " + content + "}\n";
  };
  co_await reporter_bed.start();
  for (const auto& [name, size] : {std::pair("five", 5), std::pair("hundred", 100)}) {
    SCOPED_TRACE(name);
    const auto app = reporter_bed.make_repository(name);
    FileChanges files;
    for (int i = 0; i < size; ++i) {
      files["c-" + std::to_string(i) + ".yaml"] = config_map(i, "first");
    }
    const auto first = co_await reporter_bed.commit(app, files, "first");
    co_await reporter_bed.create(app);
    co_await reporter_bed.sync(app, first.id);
    CO_ASSERT_TRUE(co_await reporter_bed.settled(app, first.id));

    // One change, one event.
    auto before = co_await reporter_bed.calls();
    auto seen = reporter_bed.platform.reports().size();
    co_await reporter_bed.aside([&] {
      reporter_bed.bed.cluster().kubectl_ok({"-n", kNamespace, "label", "applications.argoproj.io",
                                             app.name, "--overwrite", "team=other"});
    });
    CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for_count(seen + 1, soon(kEventLimit)));
    CO_ASSERT_TRUE(co_await reporter_bed.quiet());
    EXPECT_EQ(reporter_bed.platform.reports().size(), seen + 1);
    EXPECT_THAT(co_await reporter_bed.calls_since(before),
                ElementsAre(Pair("ManagedResources", 1), Pair("ResourceTree", 1)));

    // A commit not seen before. The other two calls are this test's.
    before = co_await reporter_bed.calls();
    seen = reporter_bed.platform.reports().size();
    const auto second =
        co_await reporter_bed.commit(app, {{"c-0.yaml", config_map(0, "second")}}, "second");
    co_await reporter_bed.sync(app, second.id);
    CO_ASSERT_TRUE(co_await reporter_bed.settled(app, second.id, seen));
    const auto events =
        static_cast<long>(reporter_bed.platform.find("Application", app.name, seen).size());
    // States that a newer one supersedes need no managed resources.
    EXPECT_THAT(
        co_await reporter_bed.calls_since(before),
        ElementsAre(Pair("Get", 1), Pair("ManagedResources", AllOf(Ge(1), Le(events))),
                    Pair("ResourceTree", events), Pair("RevisionMetadata", 1), Pair("Sync", 1)));
    for (const auto* report : reporter_bed.platform.find("ConfigMap", "", seen)) {
      EXPECT_EQ(report->name(), "c-0");
    }
  }
}

}  // namespace gitops::test
