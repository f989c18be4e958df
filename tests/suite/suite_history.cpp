#include "suite/suite_history.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <sstream>

#include <gtest/gtest.h>

#include "demo/narrator.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr std::array<const char*, 3> kApps{"shop", "ledger", "search"};
constexpr const char* kVisitor = "visitor";  // comes and goes
constexpr const char* kKind = "ConfigMap";
constexpr std::size_t kFirstResources = 5;
constexpr std::size_t kMaxResources = 10;
constexpr auto kStartLimit = std::chrono::seconds(60);
constexpr auto kPoll = milliseconds(100);

std::string config_map(const std::string& name, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  value: \"" +
         value + "\"\n";
}

std::string resource_of(const std::string& app, std::size_t number) {
  return app + "-" + std::to_string(number);
}

}  // namespace

SuiteHistory::SuiteHistory(const Executor& executor, demo::World& world, GitServer& git,
                           std::uint64_t seed)
    : world_(world), git_(git), bed_(executor, world, git), model_(kKind), seed_(seed) {}

Task<Json> SuiteHistory::ask(std::string document) {
  return bed_.plane().ask(std::move(document));
}

Task<> SuiteHistory::create_application(std::string app) {
  auto& url = repositories_[app];
  if (url.empty()) {
    url = co_await run_on(bed_.pool(), [&] { return git_.create_repository(app); });
  }
  SuiteModel::Changes first;
  for (std::size_t i = 0; i < kFirstResources; ++i) {
    first[resource_of(app, i)] = std::to_string(++commits_);
  }
  FileChanges files;
  for (const auto& [name, content] : first) files[name + ".yaml"] = config_map(name, *content);
  const auto message = "first of " + app + ", " + std::to_string(commits_);
  const auto revision =
      co_await run_on(bed_.pool(), [&] { return git_.commit(app, files, message); });
  co_await world_.create_app(app, url);
  co_await world_.sync(app, revision);
  model_.sync(app, revision, message, first, app != kVisitor);
}

Task<> SuiteHistory::start() {
  co_await bed_.start();
  for (const auto* app : kApps) co_await create_application(app);
  bed_.start_reporter();
  CO_ASSERT_TRUE(co_await eventually([this] { return bed_.are_all_ready(); },
                                     "the suite to be ready", kStartLimit));
  std::map<std::string, std::string> uids;
  CO_ASSERT_TRUE(co_await eventually(
      [&]() -> Task<bool> {
        const Json list = co_await ask(
            "{ applications(filters: {}, pagination: {first: 100}) { edges { node { metadata { "
            "name "
            "uid } } } } }");
        for (const Json& edge : list.at("edges")) {
          const Json& metadata = edge.at("/node/metadata"_json_pointer);
          uids[metadata.at("name")] = metadata.at("uid");
        }
        co_return uids.size() == kApps.size();
      },
      "the Applications at the control plane", kStartLimit));
  const auto executor = co_await asio::this_coro::executor;
  page_ = std::make_unique<SuitePage>(
      executor, bed_.plane().client(), [this](std::string document) { return ask(document); },
      SuitePage::Options{.control_plane = bed_.page_url(),
                         .key = bed_.plane().key(),
                         .open = uids,
                         .kind = kKind});
  co_await page_->wait_until_live();
  schedule_ = std::make_unique<SuiteSchedule>(suite_faults(bed_), seed_);
  users_ = std::make_unique<SuiteUsers>(executor, bed_, kApps.front());
  for (const auto kind : SuiteUsers::kKinds) {
    CO_ASSERT_TRUE(
        co_await eventually([&]() -> Task<bool> { co_return (co_await users_->ask(kind)).empty(); },
                            "an answer through the tunnel", kStartLimit));
  }
  users_->start();
  co_await calm();
}

Task<> SuiteHistory::stop() {
  if (users_) co_await users_->stop();
  if (page_) co_await page_->stop();
  co_await bed_.stop();
}

Task<> SuiteHistory::commit(std::string app, SuiteModel::Changes changes) {
  const auto message = "change " + std::to_string(++commits_);
  FileChanges files;
  for (const auto& [name, content] : changes) {
    files[name + ".yaml"] =
        content ? std::optional(config_map(name, *content)) : std::optional<std::string>();
  }
  const auto revision =
      co_await run_on(bed_.pool(), [&] { return git_.commit(app, files, message); });
  co_await world_.sync(app, revision);
  model_.sync(app, revision, message, changes, app != kVisitor);
}

Task<> SuiteHistory::change() {
  const std::string app = kApps.at(schedule_->pick(kApps.size()));
  const auto count = model_.resources(app);
  SuiteModel::Changes changes;
  const auto content = std::to_string(commits_ + 1);
  // The resources of an Application are numbered without a gap.
  switch (schedule_->pick(4)) {
    case 0:
      if (count < kMaxResources) changes[resource_of(app, count)] = content;
      break;
    case 1:
      if (count > 1) changes[resource_of(app, count - 1)] = std::nullopt;
      break;
    default:
      break;
  }
  if (changes.empty()) changes[resource_of(app, schedule_->pick(count))] = content;
  co_await commit(app, std::move(changes));
}

// Only while all is calm: Argo CD may still be deleting it otherwise.
Task<> SuiteHistory::visit_or_leave() {
  if (model_.has(kVisitor)) {
    co_await world_.delete_app(kVisitor);
    model_.remove(kVisitor);
  } else {
    co_await create_application(kVisitor);
  }
}

Task<std::vector<std::string>> SuiteHistory::wrong() {
  auto found = model_.wrong(co_await page_->rows());
  for (auto& line : found) line = "open " + line;
  if (!found.empty()) co_return found;
  for (const auto& line : model_.wrong(co_await page_->read())) found.push_back("new " + line);
  co_return found;
}

Task<> SuiteHistory::calm(Clock::duration limit) {
  for (const auto kind : SuiteUsers::kKinds) {
    EXPECT_TRUE(co_await users_->end_outage(kind, limit)) << "users are not served again";
  }
  const auto begin = Clock::now();
  std::vector<std::string> found;
  while (true) {
    try {
      found = co_await wrong();
    } catch (const demo::Failure& failure) {
      found = {failure.what()};
    }
    const auto took = Clock::now() - begin;
    if (found.empty() || took > limit) {
      calms_.push_back(std::chrono::duration<double>(took).count());
      break;
    }
    co_await sleep_for(kPoll);
  }
  rows_compared_ += 2 * model_.size();
  wrong_rows_ += found.size();
  for (const auto& line : found) ADD_FAILURE() << line;
  for (const auto& line : users_->failed()) ADD_FAILURE() << "could have been answered: " << line;
}

Task<> SuiteHistory::begin(const SuiteFault& fault) {
  log_ += fault.name() + "; ";
  ++faults_;
  ++kinds_[fault.kind];
  for (const auto kind : fault.outage) users_->begin_outage(kind);
  co_await fault.begin();
}

Task<> SuiteHistory::end(const SuiteFault& fault) {
  co_await fault.end();
}

Task<> SuiteHistory::play_pair() {
  const auto [first, second] = schedule_->next();
  pairs_.insert(std::minmax(first->kind, second->kind));
  if (schedule_->pick(3) == 0) co_await visit_or_leave();
  co_await change();
  const auto begin_of_faults = Clock::now();
  co_await begin(*first);
  if (schedule_->pick(2) == 0) co_await change();
  co_await begin(*second);
  co_await change();
  // Long enough for every timer that has a second or less.
  co_await sleep_for(milliseconds(500 + schedule_->pick(1000)));
  const bool is_first_longer = schedule_->pick(2) == 0;
  co_await end(is_first_longer ? *second : *first);
  co_await change();
  co_await end(is_first_longer ? *first : *second);
  co_await calm(std::max(kCalm, Clock::now() - begin_of_faults));
}

std::string SuiteHistory::logs() {
  return "faults: " + log_ + "\n" + bed_.logs();
}

std::string SuiteHistory::figures() const {
  const auto& requests = users_->figures();
  auto calms = calms_;
  std::ranges::sort(calms);
  std::ostringstream out;
  out << "faults " << faults_ << ", pairs of kinds " << pairs_.size() << ", commits " << commits_
      << ", rows compared " << rows_compared_ << ", wrong " << wrong_rows_ << "; right again after "
      << calms[calms.size() / 2] << " s, at most " << calms.back() << " s; requests "
      << requests.requests << ", failed in an outage " << requests.excused << ", slowest answer "
      << std::chrono::duration<double>(requests.slowest).count() << " s\n";
  for (const auto& [kind, count] : kinds_) out << "  " << kind << ": " << count << "\n";
  for (const auto& [reason, count] : requests.reasons) {
    out << "  request failed, " << reason << ": " << count << "\n";
  }
  return out.str();
}

}  // namespace gitops::test
