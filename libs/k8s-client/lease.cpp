#include "k8s-client/lease.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/backoff.hpp"
#include "common/core/log.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

const Log kLog("lease");
constexpr std::chrono::seconds kReleaseTimeout{2};

std::string text_of(const Json& spec, const char* key) {
  const auto found = spec.find(key);
  return found != spec.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number_of(const Json& spec, const char* key) {
  const auto found = spec.find(key);
  return found != spec.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// Nothing when the text is not a Lease.
std::optional<LeaseRecord> parse_lease(const std::string& object) {
  const Json json = Json::parse(object, nullptr, false);
  if (!json.is_object() || !json.contains("metadata")) return std::nullopt;
  const auto spec = json.find("spec");
  if (spec == json.end() || !spec->is_object()) return LeaseRecord();
  return LeaseRecord{.holder = text_of(*spec, "holderIdentity"),
                     .duration = std::chrono::seconds(std::clamp<std::int64_t>(
                         number_of(*spec, "leaseDurationSeconds"), 0, std::int64_t{24} * 3600)),
                     .acquired = text_of(*spec, "acquireTime"),
                     .renewed = text_of(*spec, "renewTime"),
                     .transitions = number_of(*spec, "leaseTransitions")};
}

}  // namespace

LeaseSteps::LeaseSteps(LeaseOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(static_cast<std::minstd_rand::result_type>(seed % 2147483646 + 1)) {}

LeaseSteps::Action LeaseSteps::next(Clock::time_point now, WallTime wall) {
  if (now < wait_until_) {
    // A leader's wait ends when it must stop leading, whatever else was planned.
    const auto until = leading(now) ? std::min(wait_until_, leading_until_) : wait_until_;
    return {.kind = Action::Kind::wait, .object = {}, .until = until};
  }
  pending_ = std::exchange(planned_, Action::Kind::read);
  sent_at_ = now;
  Action action{.kind = pending_, .object = {}, .until = now + options_.renew_deadline};
  if (leading(now)) action.until = leading_until_;
  if (pending_ == Action::Kind::create) {
    action.object = object_with({.holder = options_.identity,
                                 .duration = options_.lease_duration,
                                 .acquired = format_rfc3339_micros(wall),
                                 .renewed = format_rfc3339_micros(wall),
                                 .transitions = 0});
  } else if (pending_ == Action::Kind::update) {
    action.object = object_with(own_record(wall));
  }
  return action;
}

void LeaseSteps::on_answer(const Result<std::string>& answer, Clock::time_point now) {
  if (pending_ == Action::Kind::read) {
    if (!answer) {
      if (answer.error().code == ErrorCode::not_found) {
        object_.clear();
        observed_ = {};
        planned_ = Action::Kind::create;
        return;
      }
      return pause(now);
    }
    observe(*answer, now);
    // As in client-go our own name frees it too: this is the next process of the same pod.
    const bool free = observed_.holder.empty() || observed_.holder == options_.identity ||
                      now >= observed_at_ + observed_.duration;
    if (!free || object_.empty()) return pause(now);
    planned_ = Action::Kind::update;
    return;
  }
  // Another was quicker, or the API server did not answer: look again after a while.
  if (!answer) return pause(now);
  observe(*answer, now);
  if (observed_.holder == options_.identity) leading_until_ = sent_at_ + options_.renew_deadline;
  pause(now);
  if (leading(now)) planned_ = Action::Kind::update;
}

bool LeaseSteps::stop(Clock::time_point now) {
  const bool led = leading(now);
  leading_until_ = {};
  return led || pending_ != Action::Kind::read;
}

std::optional<std::string> LeaseSteps::release(const std::string& lease, WallTime wall) {
  const auto current = parse_lease(lease);
  if (!current || current->holder != options_.identity) return std::nullopt;
  object_ = lease;
  LeaseRecord record = *current;
  record.holder.clear();
  record.duration = std::chrono::seconds(1);
  record.acquired = record.renewed = format_rfc3339_micros(wall);
  return object_with(record);
}

LeaseRecord LeaseSteps::own_record(WallTime wall) const {
  LeaseRecord record{.holder = options_.identity,
                     .duration = options_.lease_duration,
                     .acquired = format_rfc3339_micros(wall),
                     .renewed = format_rfc3339_micros(wall),
                     .transitions = observed_.transitions};
  if (observed_.holder == options_.identity) {
    record.acquired = observed_.acquired;
  } else {
    ++record.transitions;
  }
  return record;
}

std::string LeaseSteps::object_with(const LeaseRecord& record) const {
  Json json = Json::parse(object_, nullptr, false);
  if (!json.is_object()) {
    json = {{"apiVersion", resources::kLeases.api_version()},
            {"kind", resources::kLeases.kind},
            {"metadata", {{"namespace", options_.key.ns}, {"name", options_.key.name}}}};
  }
  Json& spec = json["spec"];
  if (!spec.is_object()) spec = Json::object();
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration.count();
  spec["acquireTime"] = record.acquired;
  spec["renewTime"] = record.renewed;
  spec["leaseTransitions"] = record.transitions;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void LeaseSteps::observe(const std::string& object, Clock::time_point now) {
  const auto record = parse_lease(object);
  if (!record) {
    object_.clear();
    return;
  }
  object_ = object;
  if (observed_ == *record && observed_at_ != Clock::time_point()) return;
  observed_ = *record;
  observed_at_ = now;
  if (observed_.holder != options_.identity) leading_until_ = {};
}

// Leaders come back in time; the others spread out, so that they do not all come at once.
void LeaseSteps::pause(Clock::time_point now) {
  wait_until_ = now + options_.retry_period;
  if (leading(now)) return;
  const auto jitter = std::chrono::duration_cast<std::chrono::milliseconds>(options_.retry_period);
  wait_until_ += std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(0, jitter.count())(random_));
}

LeaseElection::LeaseElection(Client& client, LeaseOptions options,
                             std::function<void(bool leading)> on_change)
    : client_(client),
      options_(options),
      on_change_(std::move(on_change)),
      steps_(std::move(options), random_seed()) {}

void LeaseElection::start(TaskGroup& group) {
  group.spawn("lease " + options_.key.to_string(), [this] { return run(); });
}

Task<Result<std::string>> LeaseElection::perform(LeaseSteps::Action action) {
  switch (action.kind) {
    case LeaseSteps::Action::Kind::create:
      co_return co_await client_.create(resources::kLeases, options_.key.ns,
                                        std::move(action.object), action.until);
    case LeaseSteps::Action::Kind::update:
      co_return co_await client_.update(resources::kLeases, options_.key, std::move(action.object),
                                        action.until);
    default:
      co_return co_await client_.get(resources::kLeases, options_.key, action.until);
  }
}

Task<> LeaseElection::run() {
  RepeatFilter failures(std::chrono::minutes(1));
  try {
    while (true) {
      LeaseSteps::Action action = steps_.next(Clock::now(), wall_now());
      tell();
      if (action.kind == LeaseSteps::Action::Kind::wait) {
        co_await sleep_until(action.until);
        continue;
      }
      const bool reads = action.kind == LeaseSteps::Action::Kind::read;
      const auto answer = co_await perform(std::move(action));
      steps_.on_answer(answer, Clock::now());
      // That there is no Lease yet, or that another was quicker, is no trouble.
      const bool trouble = !answer && !(reads && answer.error().code == ErrorCode::not_found) &&
                           answer.error().code != ErrorCode::conflict;
      if (trouble && failures.check(to_string(answer.error().code), Clock::now()).pass) {
        kLog.warning("lease not reachable",
                     {{"lease", options_.key.to_string()}, {"error", answer.error().message}});
      }
      tell();
    }
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  const bool may_hold = steps_.stop(Clock::now());
  tell();
  if (!may_hold) co_return;
  co_await asio::this_coro::reset_cancellation_state();
  co_await give_back();
}

Task<> LeaseElection::give_back() {
  const Deadline deadline = deadline_after(kReleaseTimeout);
  auto result = co_await client_.get(resources::kLeases, options_.key, deadline);
  if (result) {
    auto free = steps_.release(*result, wall_now());
    if (!free) co_return;
    result = co_await client_.update(resources::kLeases, options_.key, std::move(*free), deadline);
  }
  if (!result) {
    kLog.warning("lease not given back, others wait until it runs out",
                 {{"lease", options_.key.to_string()}, {"error", result.error().message}});
  }
}

void LeaseElection::tell() {
  const bool leading = steps_.leading(Clock::now());
  if (leading == leading_) return;
  leading_ = leading;
  kLog.info(leading ? "leading" : "not leading any more", {{"lease", options_.key.to_string()}});
  on_change_(leading);
}

}  // namespace gitops::k8s
