#include "contract/kube_watch_contract.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s-client/watch.hpp"

namespace gitops::test {

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr std::string_view kLabel = "contract=yes";

k8s::ClusterConfig through(const TcpRelay& relay, k8s::ClusterConfig config) {
  config.server.host = "127.0.0.1";
  config.server.port = relay.port();
  return config;
}

k8s::InformerOptions informer_options(const std::string& ns, k8s::Reflector::Options reflector,
                                      const KubeWatchFixture::Tune& tune) {
  // Short, so that cases do not wait for long.
  reflector.backoff = {.initial = 20ms, .max = 500ms};
  k8s::InformerOptions options{.resource = k8s::resources::kConfigMaps,
                               .ns = ns,
                               .label_selector = std::string(kLabel),
                               .fields = k8s::FieldSet({"data.value"}),
                               .reflector = reflector};
  if (tune) tune(options);
  return options;
}

const k8s::Reflector::Options kStreaming{};
const k8s::Reflector::Options kPaged{.streaming_list = false, .page_limit = 4};

}  // namespace

KubeWatchFixture::KubeWatchFixture(const Executor& executor, const KubeWatchPeer& peer,
                                   k8s::Reflector::Options options, const Tune& tune)
    : peer_(peer),
      client_(executor, resolver_, peer.config, {}, "contract"),
      relay_(executor, peer.config.server.host, peer.config.server.port),
      watch_client_(executor, resolver_, through(relay_, peer.config), {}, "contract"),
      tasks_(executor),
      changed_(executor),
      informer_(executor, watch_client_, informer_options(peer.ns, options, tune), metrics_,
                "contract"),
      subscription_(informer_.subscribe([this](const k8s::Change& change) { on_change(change); })) {
}

Task<> KubeWatchFixture::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  co_await relay_.stop();
}

Task<bool> KubeWatchFixture::create(std::string name, std::string value) {
  const Json object{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", name}, {"labels", {{"contract", "yes"}}}}},
                    {"data", {{"value", value}}}};
  const auto made =
      co_await client_.create(k8s::resources::kConfigMaps, peer_.ns, object.dump(), deadline());
  co_return made.has_value();
}

Task<bool> KubeWatchFixture::update(std::string name, std::string value) {
  co_return co_await patch(std::move(name), Json{{"data", {{"value", value}}}}.dump());
}

Task<bool> KubeWatchFixture::unlabel(std::string name) {
  co_return co_await patch(std::move(name), R"({"metadata":{"labels":{"contract":"no"}}})");
}

Task<bool> KubeWatchFixture::patch(std::string name, std::string body) {
  const auto patched =
      co_await client_.patch(k8s::resources::kConfigMaps, {peer_.ns, std::move(name)},
                             k8s::PatchType::merge, std::move(body), deadline());
  co_return patched.has_value();
}

Task<bool> KubeWatchFixture::remove(std::string name) {
  const auto removed =
      co_await client_.remove(k8s::resources::kConfigMaps, {peer_.ns, std::move(name)}, deadline());
  co_return removed.has_value();
}

Task<bool> KubeWatchFixture::synced() {
  return informer_.wait_synced(deadline());
}

Task<bool> KubeWatchFixture::converges() {
  const auto limit = deadline();
  for (;;) {
    const auto server = co_await server_content();
    if (server && *server == store_content() && *server == told_content_) co_return true;
    if (Clock::now() > limit) {
      ADD_FAILURE() << "server: " << (server ? std::to_string(server->size()) : "no answer")
                    << " objects, store: " << informer_.size() << ", told: " << told_content_.size()
                    << ", last error: " << informer_.last_error();
      co_return false;
    }
    co_await changed_.wait(deadline_after(50ms));
  }
}

Task<bool> KubeWatchFixture::disconnect() {
  relay_.close();
  co_return co_await wait_until([this] { return !informer_.last_error().empty(); });
}

Task<bool> KubeWatchFixture::wait_until(std::function<bool()> condition) {
  const auto limit = deadline();
  while (!condition()) {
    if (Clock::now() > limit) co_return false;
    co_await changed_.wait(deadline_after(10ms));
  }
  co_return true;
}

void KubeWatchFixture::on_change(const k8s::Change& change) {
  const auto break_rule = [&](const std::string& what) {
    broken_rule_ += std::string(change.now->name()) + ": " + what + "; ";
  };
  const std::string name(change.now->name());
  const Seen now{std::string(change.now->uid()), std::string(change.now->resource_version()),
                 std::string(change.now->field(0).value_or(""))};
  const auto known = told_content_.find(name);
  // Versions of different epochs cannot be compared.
  const bool same_epoch = std::exchange(told_epoch_[name], informer_.epoch()) == informer_.epoch();
  const auto* const stored = informer_.find(change.now->key());
  switch (change.type) {
    case k8s::Change::Type::added:
      if (known != told_content_.end()) break_rule("added twice");
      if (change.before != nullptr) break_rule("added, with a state before");
      break;
    case k8s::Change::Type::modified:
      if (known == told_content_.end()) break_rule("modified before it was added");
      if (known != told_content_.end() && same_epoch && known->second.version == now.version) {
        break_rule("told again without a change");
      }
      if (known != told_content_.end() && known->second.uid != now.uid) {
        break_rule("another object, not told as deleted and added");
      }
      if (known != told_content_.end() && same_epoch &&
          k8s::is_older_version(now.version, known->second.version)) {
        break_rule("went back");
      }
      break;
    case k8s::Change::Type::deleted:
      if (known == told_content_.end()) break_rule("deleted, but was not there");
      if (stored != nullptr) break_rule("deleted, but still in the store");
      told_.push_back("-" + name);
      told_content_.erase(name);
      changed_.notify_all();
      return;
  }
  if (stored != change.now) break_rule("not in the store yet");
  if (!change.text.contains("\"" + name + "\"")) break_rule("the text is of something else");
  told_.push_back((change.type == k8s::Change::Type::added ? "+" : "~") + name + "=" + now.value);
  told_content_[name] = now;
  changed_.notify_all();
}

Task<std::optional<KubeWatchFixture::Content>> KubeWatchFixture::server_content() {
  k8s::ListOptions options;
  options.label_selector = kLabel;
  options.limit = 0;
  const auto text =
      co_await client_.list(k8s::resources::kConfigMaps, peer_.ns, std::move(options), deadline());
  if (!text) co_return std::nullopt;
  Content content;
  const auto list = Json::parse(*text);
  for (const auto& item : list.at("items")) {
    const auto& metadata = item.at("metadata");
    if (!metadata.at("uid").is_string()) continue;  // malformed on purpose
    content[metadata.at("name")] = {metadata.at("uid"), metadata.at("resourceVersion"),
                                    item.at("data").at("value")};
  }
  co_return content;
}

KubeWatchFixture::Content KubeWatchFixture::store_content() const {
  Content content;
  informer_.for_each([&](const k8s::Record& record) {
    content[std::string(record.name())] = {std::string(record.uid()),
                                           std::string(record.resource_version()),
                                           std::string(record.field(0).value_or(""))};
  });
  return content;
}

Task<> with_kube_watch_fixture(const KubeWatchPeer& peer, k8s::Reflector::Options options,
                               std::function<Task<>(KubeWatchFixture&)> body,
                               KubeWatchFixture::Tune tune) {
  const Executor executor = co_await asio::this_coro::executor;
  KubeWatchFixture fixture(executor, peer, options, tune);
  std::exception_ptr failure;
  try {
    co_await body(fixture);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await fixture.stop();
  EXPECT_EQ(fixture.broken_rule(), "");
  if (failure) std::rethrow_exception(failure);
}

namespace {

Task<bool> create_some(KubeWatchFixture& fixture, int count) {
  for (int i = 0; i < count; ++i) {
    if (!co_await fixture.create("cm-" + std::to_string(i), "first")) co_return false;
  }
  co_return true;
}

Task<> initial_list(const KubeWatchPeer& peer, k8s::Reflector::Options options) {
  return with_kube_watch_fixture(peer, options, [](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 10));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    EXPECT_EQ(fixture.told().size(), 10U) << "all were told before has_synced() turned true";
    CO_ASSERT_TRUE(co_await fixture.create("later", "1"));
    EXPECT_TRUE(co_await fixture.converges());
  });
}

Task<> events_in_order(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [](KubeWatchFixture& fixture) -> Task<> {
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    CO_ASSERT_TRUE(co_await fixture.create("a", "1"));
    CO_ASSERT_TRUE(co_await fixture.update("a", "2"));
    CO_ASSERT_TRUE(co_await fixture.remove("a"));
    CO_ASSERT_TRUE(co_await fixture.create("a", "3"));
    CO_ASSERT_TRUE(co_await fixture.update("a", "3"));  // changes nothing
    CO_ASSERT_TRUE(co_await fixture.create("b", "1"));
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return fixture.told().size() >= 5; }));
    EXPECT_THAT(fixture.told(), ElementsAre("+a=1", "~a=2", "-a", "+a=3", "+b=1"));
    EXPECT_TRUE(co_await fixture.converges());
  });
}

Task<> leaving_the_selection(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 2));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    fixture.forget_told();
    CO_ASSERT_TRUE(co_await fixture.unlabel("cm-0"));
    CO_ASSERT_TRUE(co_await fixture.wait_until([&] { return !fixture.told().empty(); }));
    EXPECT_THAT(fixture.told(), ElementsAre("-cm-0"));
    EXPECT_TRUE(co_await fixture.converges());
  });
}

Task<> resumes_where_it_was(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kPaged, [](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 5));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    CO_ASSERT_TRUE(co_await fixture.update("cm-4", "second"));
    CO_ASSERT_TRUE(co_await fixture.converges());
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    fixture.forget_told();
    CO_ASSERT_TRUE(co_await fixture.update("cm-1", "second"));
    CO_ASSERT_TRUE(co_await fixture.remove("cm-2"));
    CO_ASSERT_TRUE(co_await fixture.create("new", "1"));
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(), ElementsAre("~cm-1=second", "-cm-2", "+new=1"));
    EXPECT_THAT(fixture.metrics(), testing::Not(testing::HasSubstr("reason=\"gone\"")));
  });
}

Task<> lists_again_after_gone(const KubeWatchPeer& peer, k8s::Reflector::Options options) {
  return with_kube_watch_fixture(peer, options, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 6));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    CO_ASSERT_TRUE(co_await fixture.converges());
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    fixture.forget_told();
    CO_ASSERT_TRUE(co_await fixture.remove("cm-0"));
    CO_ASSERT_TRUE(co_await fixture.update("cm-1", "second"));
    CO_ASSERT_TRUE(co_await fixture.remove("cm-2"));
    CO_ASSERT_TRUE(co_await fixture.create("cm-2", "again"));
    CO_ASSERT_TRUE(co_await fixture.create("new", "1"));
    peer.make_versions_gone();
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.told(),
                UnorderedElementsAre("-cm-0", "~cm-1=second", "-cm-2", "+cm-2=again", "+new=1"));
    EXPECT_THAT(fixture.metrics(), testing::HasSubstr("reason=\"gone\""));
    CO_ASSERT_TRUE(co_await fixture.update("cm-3", "second"));
    EXPECT_TRUE(co_await fixture.converges());
  });
}

// After each first page the other pages are gone: a list slower than the server's compaction.
Task<> lists_whole_when_pages_are_gone(const KubeWatchPeer& peer) {
  const auto lists = std::make_shared<int>(0);
  return with_kube_watch_fixture(
      peer, kPaged,
      [lists](KubeWatchFixture& fixture) -> Task<> {
        CO_ASSERT_TRUE(co_await create_some(fixture, 10));
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.synced());
        EXPECT_EQ(*lists, 2) << "the first in pages, the second whole";
        EXPECT_EQ(fixture.told().size(), 10U);
        EXPECT_TRUE(co_await fixture.converges());
      },
      [&peer, lists](k8s::InformerOptions& options) {
        options.keep = [&peer, lists](std::string_view, std::string_view name) {
          if (name == "cm-3" && ++*lists <= 4) peer.make_versions_gone();
          return true;
        };
      });
}

Task<> lists_again_after_a_restore(const KubeWatchPeer& peer, k8s::Reflector::Options options) {
  return with_kube_watch_fixture(peer, options, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 5));
    co_await peer.back_up();
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    CO_ASSERT_TRUE(co_await fixture.update("cm-1", "second"));
    CO_ASSERT_TRUE(co_await fixture.remove("cm-2"));
    for (int i = 0; i < 30; ++i) {
      CO_ASSERT_TRUE(co_await fixture.create("new-" + std::to_string(i), "1"));
    }
    CO_ASSERT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.informer().epoch(), 0U);
    fixture.forget_told();
    co_await peer.restore();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.informer().epoch(), 1U);
    EXPECT_THAT(fixture.told(), testing::IsSupersetOf({"~cm-0=first", "~cm-1=first", "+cm-2=first",
                                                       "-new-0", "-new-29"}));
    // Versions are still lower than before the restore.
    CO_ASSERT_TRUE(co_await fixture.update("cm-3", "third"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_EQ(fixture.told().back(), "~cm-3=third");
    EXPECT_THAT(fixture.metrics(), testing::HasSubstr("reason=\"restored\""));
  });
}

Task<> survives_a_restart(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 5));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    co_await peer.restart();
    CO_ASSERT_TRUE(co_await fixture.update("cm-1", "second"));
    CO_ASSERT_TRUE(co_await fixture.remove("cm-2"));
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_TRUE(fixture.informer().has_synced());
  });
}

Task<> survives_cuts(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [](KubeWatchFixture& fixture) -> Task<> {
    fixture.start();
    for (int i = 0; i < 40; ++i) {
      const auto name = "cm-" + std::to_string(i % 7);
      if (i < 7) {
        CO_ASSERT_TRUE(co_await fixture.create(name, "0"));
      } else {
        CO_ASSERT_TRUE(co_await fixture.update(name, std::to_string(i)));
      }
      if (i % 4 == 3) fixture.relay().cut();
    }
    CO_ASSERT_TRUE(co_await fixture.remove("cm-3"));
    EXPECT_TRUE(co_await fixture.converges());
  });
}

Task<> pages_when_streaming_lists_are_refused(const KubeWatchPeer& peer) {
  co_await peer.allow_streaming_lists(false);
  co_await with_kube_watch_fixture(peer, kStreaming, [&peer](KubeWatchFixture& fixture) -> Task<> {
    const std::string once = "reason=\"streaming_refused\",resource=\"configmaps\"} 1";
    CO_ASSERT_TRUE(co_await create_some(fixture, 5));
    fixture.start();
    CO_ASSERT_TRUE(co_await fixture.synced());
    EXPECT_EQ(fixture.told().size(), 5U);
    EXPECT_THAT(fixture.metrics(), testing::HasSubstr(once));
    CO_ASSERT_TRUE(co_await fixture.disconnect());
    CO_ASSERT_TRUE(co_await fixture.remove("cm-0"));
    peer.make_versions_gone();
    fixture.reconnect();
    EXPECT_TRUE(co_await fixture.converges());
    EXPECT_THAT(fixture.metrics(), testing::HasSubstr("reason=\"gone\""));
    EXPECT_THAT(fixture.metrics(), testing::HasSubstr(once)) << "it was not tried again";
  });
  co_await peer.allow_streaming_lists(true);
}

// Servers send bookmarks every minute and shortly before the end of a watch. Secrets, because only
// kinds in the real server's watch cache have bookmarks.
Task<> reopens_a_watch_that_falls_silent(const KubeWatchPeer& peer) {
  k8s::Reflector::Options options = kStreaming;
  options.watch_timeout_min = options.watch_timeout_max = 6s;
  return with_kube_watch_fixture(
      peer, options,
      [](KubeWatchFixture& fixture) -> Task<> {
        fixture.start();
        CO_ASSERT_TRUE(co_await fixture.synced());
        CO_ASSERT_TRUE(co_await fixture.wait_until(
            [&] { return fixture.metrics().contains("type=\"bookmark\""); }));
        fixture.relay().hold();
        EXPECT_TRUE(co_await fixture.wait_until([&] {
          return fixture.informer().last_error().contains("nothing received for 3s");
        })) << "it waited for the end of the watch";
        fixture.relay().release();
        EXPECT_TRUE(
            co_await fixture.wait_until([&] { return fixture.informer().last_error().empty(); }));
      },
      [](k8s::InformerOptions& options) {
        options.resource = k8s::resources::kSecrets;
        options.bookmark_silence = 3s;
      });
}

// Reads a watch until `enough` events have arrived, the watch ends, or the deadline passes.
Task<std::vector<k8s::WatchEvent::Type>> read_events(KubeWatchFixture& fixture,
                                                     k8s::WatchStream stream, std::size_t enough,
                                                     Error& error, std::string& version) {
  k8s::ObjectDecoder objects{k8s::FieldSet({})};
  k8s::WatchDecoder events(objects);
  std::vector<k8s::WatchEvent::Type> types;
  stream.set_deadline(fixture.deadline());
  while (types.size() < enough) {
    const auto bytes = co_await stream.read_some();
    if (!bytes || bytes->empty()) break;
    events.feed(*bytes, [&](k8s::WatchEvent&& event) {
      types.push_back(event.type);
      version = event.resource_version;
      error = event.error;
    });
  }
  co_return types;
}

Task<> streaming_list_ends_with_a_bookmark(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 3));
    k8s::WatchOptions options;
    options.label_selector = kLabel;
    options.send_initial_events = true;
    auto stream = co_await fixture.client().watch(k8s::resources::kConfigMaps, peer.ns, options,
                                                  fixture.deadline());
    CO_ASSERT_OK(stream);
    Error error;
    std::string version;
    using Type = k8s::WatchEvent::Type;
    EXPECT_THAT(co_await read_events(fixture, std::move(*stream), 4, error, version),
                ElementsAre(Type::added, Type::added, Type::added, Type::initial_events_end));
    EXPECT_NE(version, "");
  });
}

// One page of the list.
Task<Result<Json>> list_page(KubeWatchFixture& fixture, const KubeWatchPeer& peer,
                             std::string continue_token) {
  k8s::ListOptions options;
  options.label_selector = kLabel;
  options.limit = 2;
  options.continue_token = std::move(continue_token);
  const auto text = co_await fixture.client().list(k8s::resources::kConfigMaps, peer.ns, options,
                                                   fixture.deadline());
  if (!text) co_return std::unexpected(text.error());
  co_return Json::parse(*text);
}

Task<> old_versions_are_gone(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 5));
    const auto page = co_await list_page(fixture, peer, {});
    CO_ASSERT_OK(page);
    EXPECT_EQ(page->at("items").size(), 2U);
    const std::string token = page->at("metadata").at("continue");
    const auto second = co_await list_page(fixture, peer, token);
    CO_ASSERT_OK(second);
    EXPECT_EQ(second->at("items").at(0).at("metadata").at("name"), "cm-2");
    for (int i = 0; i < 3; ++i) CO_ASSERT_TRUE(co_await fixture.update("cm-0", std::to_string(i)));
    peer.make_versions_gone();

    const auto late = co_await list_page(fixture, peer, token);
    CO_ASSERT_TRUE(!late.has_value());
    EXPECT_EQ(late.error().code, ErrorCode::gone) << late.error().message;

    k8s::WatchOptions options;
    options.resource_version = page->at("metadata").at("resourceVersion");
    auto stream = co_await fixture.client().watch(k8s::resources::kConfigMaps, peer.ns, options,
                                                  fixture.deadline());
    Error error;
    if (stream) {
      std::string version;
      co_await read_events(fixture, std::move(*stream), 1, error, version);
    } else {
      error = stream.error();
    }
    EXPECT_EQ(error.code, ErrorCode::gone) << error.message;
  });
}

// Why a check comes before a watch resumes: the server does not refuse a watch of a future version.
// A list shows the server's version, and a list of a future version is refused.
Task<> future_versions_are_silent(const KubeWatchPeer& peer) {
  return with_kube_watch_fixture(peer, kStreaming, [&peer](KubeWatchFixture& fixture) -> Task<> {
    CO_ASSERT_TRUE(co_await create_some(fixture, 3));
    k8s::ListOptions one;
    one.limit = 1;
    const auto list = co_await fixture.client().list(k8s::resources::kConfigMaps, peer.ns, one,
                                                     fixture.deadline());
    CO_ASSERT_OK(list);
    const auto current =
        std::stoull(Json::parse(*list).at("metadata").at("resourceVersion").get<std::string>());
    k8s::WatchOptions options;
    options.resource_version = std::to_string(current + 1'000'000);
    auto stream = co_await fixture.client().watch(k8s::resources::kConfigMaps, peer.ns, options,
                                                  fixture.deadline());
    CO_ASSERT_OK(stream);
    CO_ASSERT_TRUE(co_await fixture.update("cm-1", "second"));
    stream->set_deadline(deadline_after(2s));
    const auto bytes = co_await stream->read_some();
    CO_ASSERT_TRUE(!bytes.has_value()) << *bytes;
    EXPECT_EQ(bytes.error().code, ErrorCode::timeout);

    one.resource_version = options.resource_version;
    const auto refused = co_await fixture.client().list(k8s::resources::kConfigMaps, peer.ns, one,
                                                        fixture.deadline());
    CO_ASSERT_TRUE(!refused.has_value());
    EXPECT_EQ(refused.error().http_status, 504) << refused.error().message;
    EXPECT_EQ(refused.error().cause, k8s::causes::kResourceVersionTooLarge);
  });
}

}  // namespace

std::vector<KubeWatchCase> kube_watch_cases() {
  return {
      {"InitialStreamingList", [](const auto& peer) { return initial_list(peer, kStreaming); }},
      {"InitialPagedList", [](const auto& peer) { return initial_list(peer, kPaged); }},
      {"StreamingListEndsWithABookmark", streaming_list_ends_with_a_bookmark},
      {"EventsArriveOnceAndInOrder", events_in_order},
      {"LeavingTheSelectionIsADeletion", leaving_the_selection},
      {"ResumesWhereItWas", resumes_where_it_was},
      {"OldVersionsAreGone", old_versions_are_gone},
      {"StreamsAgainAfterGone",
       [](const auto& peer) { return lists_again_after_gone(peer, kStreaming); }},
      {"PagesAgainAfterGone",
       [](const auto& peer) { return lists_again_after_gone(peer, kPaged); }},
      {"ListsWholeWhenPagesAreGone", lists_whole_when_pages_are_gone},
      {"FutureVersionsAreSilent", future_versions_are_silent},
      {"StreamsAgainAfterARestore",
       [](const auto& peer) { return lists_again_after_a_restore(peer, kStreaming); }},
      {"PagesAgainAfterARestore",
       [](const auto& peer) { return lists_again_after_a_restore(peer, kPaged); }},
      {"SurvivesARestart", survives_a_restart},
      {"SurvivesCutConnections", survives_cuts},
      {"ReopensAWatchThatFallsSilent", reopens_a_watch_that_falls_silent},
      {"PagesWhenStreamingListsAreRefused", pages_when_streaming_lists_are_refused},
  };
}

}  // namespace gitops::test
