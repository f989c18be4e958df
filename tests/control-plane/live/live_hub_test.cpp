#include "control-plane/live/live_hub.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

CallerPtr caller(const std::string& user = "ann", std::int64_t account = 1) {
  auto made = std::make_shared<Caller>();
  Account of;
  of.number = account;
  of.id = "account-" + std::to_string(account);
  made->account = std::make_shared<const Account>(std::move(of));
  made->user_id = user;
  made->credential_id = "key of " + user;
  return made;
}

// A row whose only member is its state.
std::shared_ptr<const LiveRow> row(std::int64_t id, const std::string& word,
                                   const std::string& uid = {}, std::int64_t account = 1) {
  LiveRow made{.account = account, .is_listed = true, .members = "\"is\":\"" + word + "\""};
  made.state.id = id;
  made.state.uid = uid.empty() ? "u" + std::to_string(id) : uid;
  made.state.key = {.runtime = "prod", .kind = "Application", .name = "app"};
  return std::make_shared<const LiveRow>(std::move(made));
}

std::shared_ptr<const LiveRow> gone(std::int64_t id, const std::string& uid) {
  auto made = *row(id, "gone", uid);
  made.state.presence = Presence::gone;
  return std::make_shared<const LiveRow>(std::move(made));
}

std::shared_ptr<const LiveRow> resource(std::int64_t id, const std::string& owner) {
  auto made = *row(id, "resource");
  made.is_listed = false;
  made.state.key.kind = "Deployment";
  made.owner_uid = owner;
  return std::make_shared<const LiveRow>(std::move(made));
}

// Users of the team "pay" see the Applications of one runtime.
Visibility of_runtime(const std::string& runtime) {
  const AbacRule rule{.id = "r",
                      .entity_type = "gitopsApplications",
                      .teams = {"pay"},
                      .tags = {},
                      .actions = {"VIEW"},
                      .attributes = {{.name = "RUNTIME", .key = {}, .value = runtime}}};
  const std::string team = "pay";
  return {std::span(&rule, 1), std::span(&team, 1)};
}

struct LiveHubTest : testing::Test {
  std::shared_ptr<LiveSubscriber> add(const std::string& topics, CallerPtr who = caller(),
                                      Visibility visibility = {},
                                      std::optional<std::string> cursor = "0") {
    auto read = read_topics(topics);
    auto added = hub.add(std::move(*read), who, [this] { ++wakes; });
    if (!added) return nullptr;
    hub.begin(**added, {.caller = who, .visibility = std::move(visibility)}, std::move(cursor));
    return std::move(*added);
  }
  // "patch u1=synced", "gone index u2", "reset" and so on.
  std::vector<std::string> take(const std::shared_ptr<LiveSubscriber>& from) {
    std::vector<std::string> texts;
    for (const auto& event : hub.take(*from)) {
      auto text = event.event;
      const auto data = Json::parse(event.data);
      for (const auto& one : data.value("rows", Json::array())) {
        text += " " + one["topic"].get<std::string>() + "=" + one.value("is", "?");
      }
      if (data.contains("uids")) text += " " + data["topic"].get<std::string>();
      for (const auto& uid : data.value("uids", Json::array())) {
        text += " " + uid.get<std::string>();
      }
      texts.push_back(text);
      last_id = event.id;
    }
    return texts;
  }
  LiveHub hub{{.per_user = 2, .whole = 3, .max_changed = 4, .rows_per_event = 2}};
  int wakes = 0;
  std::string last_id;
};

TEST_F(LiveHubTest, ReadsTopics) {
  const auto topics = read_topics("index,runtimes,app:u1,app:u2");
  ASSERT_TRUE(topics);
  EXPECT_TRUE(topics->index && topics->runtimes);
  EXPECT_THAT(topics->applications, ElementsAre("u1", "u2"));
  for (const auto* wrong : {"", "all", "app:", "index,", ",index", "index runtimes"}) {
    const auto read = read_topics(wrong);
    if (std::string_view(wrong) == "index,") continue;  // a comma at the end is forgiven
    EXPECT_FALSE(read) << wrong;
  }
}

TEST_F(LiveHubTest, AStreamWithoutACursorBeginsWithAReset) {
  hub.set_cursor("a:5");
  const auto fresh = add("index", caller(), {}, std::nullopt);
  EXPECT_THAT(take(fresh), ElementsAre("reset"));
  EXPECT_EQ(last_id, "a:5");
  EXPECT_THAT(take(fresh), IsEmpty());
}

TEST_F(LiveHubTest, ASlowReaderSkipsStates) {
  const auto slow = add("index");
  for (const auto* state : {"one", "two", "three"}) hub.offer(row(1, state));
  hub.offer(row(2, "four"));
  EXPECT_THAT(take(slow), ElementsAre("patch index=three index=four"));
  EXPECT_FALSE(slow->has_news());
}

TEST_F(LiveHubTest, TooManyChangesAreAReset) {
  const auto slow = add("index");
  for (int i = 1; i <= 5; ++i) hub.offer(row(i, "state"));
  EXPECT_THAT(take(slow), ElementsAre("reset"));
}

TEST_F(LiveHubTest, TheLastPartOfManyRowsMovesTheCursor) {
  const auto reader = add("index", caller(), {}, "a:1");
  for (int i = 1; i <= 3; ++i) hub.offer(row(i, std::to_string(i)));
  hub.set_cursor("a:4");
  const auto events = hub.take(*reader);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].id, "a:1") << "a client that stops here gets the rest again";
  EXPECT_EQ(events[1].id, "a:4");
}

TEST_F(LiveHubTest, RowsOfOthersAreNotSeen) {
  const auto other = add("index,app:u1", caller("eve", 2));
  hub.offer(row(1, "secret"));
  EXPECT_FALSE(other->has_news());
  OutboxChange change;
  change.account = 1;
  change.kind = "Application";
  EXPECT_FALSE(hub.wants(change));
  change.account = 2;
  EXPECT_TRUE(hub.wants(change));
}

TEST_F(LiveHubTest, RulesHideRowsAndTheirEnds) {
  const auto reader = add("index", caller(), of_runtime("dev"));
  hub.offer(row(1, "hidden"));
  hub.offer(gone(2, "u2"));
  EXPECT_THAT(take(reader), IsEmpty());
  hub.set_permissions(*reader, {.caller = caller(), .visibility = of_runtime("prod")});
  EXPECT_THAT(take(reader), ElementsAre("reset"));
  hub.offer(row(1, "seen"));
  EXPECT_THAT(take(reader), ElementsAre("patch index=seen"));
  hub.offer(gone(2, "u2"));
  EXPECT_THAT(take(reader), ElementsAre("gone index u2"));
}

TEST_F(LiveHubTest, AnObjectThatBecomesHiddenIsGone) {
  const auto reader = add("index", caller(), of_runtime("prod"));
  hub.offer(row(1, "seen"));
  take(reader);
  auto moved = *row(1, "moved");
  moved.state.key.runtime = "dev";
  hub.offer(std::make_shared<const LiveRow>(moved));
  EXPECT_THAT(take(reader), ElementsAre("gone index u1"));
  hub.offer(std::make_shared<const LiveRow>(moved));
  EXPECT_THAT(take(reader), IsEmpty());
}

TEST_F(LiveHubTest, AnotherObjectOfTheNameEndsTheOneBefore) {
  const auto reader = add("index");
  hub.offer(row(1, "old", "u-old"));
  take(reader);
  hub.offer(row(1, "new", "u-new"));
  EXPECT_THAT(take(reader), ElementsAre("gone index u-old", "patch index=new"));
}

TEST_F(LiveHubTest, AnApplicationComesWithItsResources) {
  const auto reader = add("app:u1");
  hub.offer(row(1, "app"));
  hub.offer(row(2, "another"));
  hub.offer(resource(3, "u1"));
  hub.offer(resource(4, "u2"));
  EXPECT_THAT(take(reader), ElementsAre("patch app:u1=app app:u1=resource"));
}

TEST_F(LiveHubTest, ResourcesOfAHiddenApplicationAreHidden) {
  const auto reader = add("app:u1", caller(), of_runtime("dev"));
  hub.offer(resource(3, "u1"));
  EXPECT_THAT(take(reader), IsEmpty());
  hub.set_permissions(
      *reader, {.caller = caller(), .visibility = of_runtime("prod"), .applications = {"u1"}});
  take(reader);
  hub.offer(resource(3, "u1"));
  EXPECT_THAT(take(reader), ElementsAre("patch app:u1=resource"));
}

TEST_F(LiveHubTest, ResourcesFollowTheirApplicationOutOfSightAndBack) {
  const auto reader = add("app:u1");
  hub.set_permissions(
      *reader, {.caller = caller(), .visibility = of_runtime("prod"), .applications = {"u1"}});
  take(reader);
  auto moved = *row(1, "moved");
  moved.state.key.runtime = "dev";
  hub.offer(std::make_shared<const LiveRow>(moved));
  hub.offer(resource(3, "u1"));
  EXPECT_THAT(take(reader), ElementsAre("gone app:u1 u1")) << "the page has read it";
  hub.offer(resource(3, "u1"));
  EXPECT_THAT(take(reader), IsEmpty());
  hub.offer(row(1, "back"));
  hub.offer(resource(3, "u1"));
  EXPECT_THAT(take(reader), ElementsAre("patch app:u1=back app:u1=resource"));
}

TEST_F(LiveHubTest, RuntimesAreNamed) {
  const auto reader = add("runtimes");
  hub.offer_runtime(1, "prod", std::make_shared<const std::string>("\"is\":\"prod\""));
  hub.offer_runtime(1, "old", nullptr);
  hub.offer_runtime(2, "other", nullptr);
  EXPECT_THAT(take(reader), ElementsAre("gone runtimes old", "patch runtimes=prod"));
}

TEST_F(LiveHubTest, AnOutageIsToldOnce) {
  const auto reader = add("index");
  hub.set_stale(1'772'615'520'000'000);
  const auto events = hub.take(*reader);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].event, "stale");
  EXPECT_EQ(events[0].data, R"({"since":"2026-03-04T09:12:00.000Z"})");
  EXPECT_THAT(take(reader), IsEmpty());
  const auto late = add("index");
  EXPECT_THAT(take(late), ElementsAre("stale"));
  hub.set_fresh();
  EXPECT_THAT(take(reader), ElementsAre("fresh"));
  hub.set_stale(1);
  hub.set_fresh();
  EXPECT_THAT(take(reader), IsEmpty()) << "an outage that the reader has not heard of";
}

TEST_F(LiveHubTest, ACheckIsForItsSubject) {
  const auto ann = add("index");
  const auto bob = add("index", caller("bob"));
  for (const auto* subject : {"ann", "key of ann"}) {
    hub.check(subject);
    EXPECT_TRUE(LiveHub::take_check(*ann)) << subject;
    EXPECT_FALSE(LiveHub::take_check(*bob)) << subject;
  }
  for (const auto* subject : {"account-1", ""}) {
    hub.check(subject);
    EXPECT_TRUE(LiveHub::take_check(*ann) && LiveHub::take_check(*bob)) << subject;
  }
  EXPECT_GT(wakes, 0);
}

TEST_F(LiveHubTest, StreamsAreLimited) {
  const auto first = add("index");
  const auto second = add("index");
  EXPECT_EQ(add("index"), nullptr) << "two of a user";
  const auto bob = add("index", caller("bob"));
  EXPECT_EQ(add("index", caller("eve")), nullptr) << "three in all";
  hub.remove(first);
  EXPECT_NE(add("index"), nullptr);
}

}  // namespace
}  // namespace gitops::control_plane_server
