#include "k8s-client/lease.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/backoff.hpp"
#include "common/core/json_text.hpp"
#include "common/core/json_value.hpp"
#include "common/core/log.hpp"

namespace gitops::k8s {
namespace {

using Json = nlohmann::json;

const Log kLog("lease");
constexpr std::chrono::seconds kReleaseTimeout{2};

// Returns the member of that name, replaced by an empty object if it is not an object.
Json& object_in(Json& json, const char* key) {
  Json& member = json[key];
  if (!member.is_object()) member = Json::object();
  return member;
}

LeaseRecord read_record(const JsonView& spec) {
  return {.holder = std::string(spec["holderIdentity"].text()),
          .duration = std::chrono::seconds(std::clamp<std::int64_t>(
              spec["leaseDurationSeconds"].number(), 0, std::int64_t{24} * 3600)),
          .acquired = std::string(spec["acquireTime"].text()),
          .renewed = std::string(spec["renewTime"].text()),
          .transitions = spec["leaseTransitions"].number()};
}

void add_labels(Json& lease, const Labels& labels) {
  if (labels.empty()) return;
  Json& present = object_in(object_in(lease, "metadata"), "labels");
  for (const auto& [key, value] : labels) present[key] = value;
}

// Returns the next number of transitions. The API server refuses values beyond int32.
std::int64_t after(std::int64_t transitions) {
  const bool sane = transitions >= 0 && transitions < std::numeric_limits<std::int32_t>::max();
  return sane ? transitions + 1 : 0;
}

}  // namespace

std::string label_selector(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    if (!text.empty()) text += ',';
    text.append(key).append("=").append(value);
  }
  return text;
}

void LeaseView::see(std::string_view lease, Clock::time_point now) {
  if (known() && lease == object_) return;
  JsonParser parser;
  const auto json = parser.parse_object(lease, "Lease");
  const JsonView metadata = json ? (*json)["metadata"] : JsonView();
  if (!metadata.is_object()) {
    object_.clear();
    return;
  }
  object_ = lease;
  uid_ = metadata["uid"].text();
  annotations_.clear();
  for (const auto& [name, value] : metadata["annotations"].members()) {
    if (value.is_text()) annotations_.emplace(name, value.text());
  }
  labelled_ = std::ranges::all_of(labels_, [&](const auto& label) {
    return metadata["labels"][label.first].text() == label.second;
  });
  LeaseRecord record = read_record((*json)["spec"]);
  if (since_ && record == record_) return;
  if (const auto renewed = parse_rfc3339(record.renewed)) {
    newest_renewal_ = std::max(newest_renewal_, *renewed);
  }
  record_ = std::move(record);
  since_ = now;
}

void LeaseView::see_none(Clock::time_point now) {
  if (since_ && !known() && record_ == LeaseRecord()) return;
  *this = LeaseView(std::move(key_), std::move(labels_), newest_renewal_,
                    std::move(cleared_annotation_));
  since_ = now;
}

std::string_view LeaseView::annotation(std::string_view name) const {
  const auto found = annotations_.find(name);
  return found == annotations_.end() ? std::string_view() : found->second;
}

Clock::time_point LeaseView::expires(std::chrono::seconds least) const {
  return since_.value() + std::clamp(record_.duration, least, 10 * least);
}

std::string LeaseView::taken(const std::string& identity, std::chrono::seconds duration,
                             WallTime wall, Clock::time_point now) const {
  LeaseRecord record = record_;
  record.duration = duration;
  record.renewed = time_of_write(wall, now);
  if (record.holder != identity) {
    record.holder = identity;
    record.acquired = record.renewed;
    record.transitions = known() ? after(record.transitions) : 0;
  }
  return with(record);
}

std::string LeaseView::freed(WallTime wall, Clock::time_point now) const {
  LeaseRecord record = record_;
  record.holder.clear();
  record.duration = std::chrono::seconds(1);
  record.acquired = record.renewed = time_of_write(wall, now);
  return with(record);
}

std::string LeaseView::time_of_write(WallTime wall, Clock::time_point now) const {
  const auto age = std::chrono::floor<std::chrono::milliseconds>(now - since_.value_or(now));
  return format_rfc3339_micros(std::max(wall, newest_renewal_ + std::max(kLeastStep, age / 2)));
}

std::string LeaseView::with_annotation(const std::string& name, const std::string& value) const {
  Json json = Json::parse(object_, nullptr, false);
  object_in(object_in(json, "metadata"), "annotations")[name] = value;
  add_labels(json, labels_);
  return to_text(json);
}

std::string LeaseView::with_labels() const {
  Json json = Json::parse(object_, nullptr, false);
  add_labels(json, labels_);
  return to_text(json);
}

std::string LeaseView::with(const LeaseRecord& record) const {
  Json json = Json::parse(object_, nullptr, false);
  if (!json.is_object()) {
    json = {{"metadata", {{"namespace", key_.ns}, {"name", key_.name}}}};
  }
  json["apiVersion"] = resources::kLeases.api_version();
  json["kind"] = resources::kLeases.kind;
  if (!annotation(cleared_annotation_).empty()) {
    object_in(json["metadata"], "annotations").erase(cleared_annotation_);
  }
  add_labels(json, labels_);
  Json& spec = object_in(json, "spec");
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration.count();
  spec["acquireTime"] = record.acquired;
  spec["renewTime"] = record.renewed;
  spec["leaseTransitions"] = record.transitions;
  return to_text(json);
}

LeaseSteps::LeaseSteps(LeaseOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(static_cast<std::minstd_rand::result_type>(seed % 2147483646 + 1)),
      view_(options_.key, options_.labels, options_.newest_renewal, options_.cleared_annotation) {}

LeaseSteps::Action LeaseSteps::next(Clock::time_point now, WallTime wall) {
  if (now < wait_until_) {
    // A leader waits at most until it must stop leading.
    const auto until = leading(now) ? std::min(wait_until_, leading_until_) : wait_until_;
    return {.kind = Action::Kind::wait, .object = {}, .until = until};
  }
  pending_ = std::exchange(planned_, Action::Kind::read);
  sent_at_ = now;
  Action action{.kind = pending_, .object = {}, .until = now + options_.renew_deadline};
  if (leading(now)) action.until = leading_until_;
  if (pending_ == Action::Kind::annotate) {
    action.object = std::exchange(annotated_, {});
  } else if (pending_ != Action::Kind::read) {
    action.object = view_.taken(options_.identity, options_.lease_duration, wall, now);
  }
  return action;
}

void LeaseSteps::on_answer(const Result<std::string>& answer, Clock::time_point now) {
  if (pending_ != Action::Kind::read) {
    // Another candidate was quicker, or the API server did not respond: read again after a while,
    // out of step with the writer that was quicker.
    if (!answer) {
      pause(now);
      if (is_punctual() && !leading(now)) wait_until_ += jitter();
      return;
    }
    observe(*answer, now);
    const bool ours = view_.record().holder == options_.identity;
    if (ours && pending_ != Action::Kind::annotate) {
      leading_until_ = sent_at_ + options_.renew_deadline;
    }
    pause(now);
    if (leading(now)) planned_ = Action::Kind::update;
    return;
  }
  if (!answer) {
    if (answer.error().code != ErrorCode::not_found) return pause(now);
    // The holder may not have noticed the deletion yet.
    const bool held = view_.known() && !view_.record().holder.empty() &&
                      view_.record().holder != options_.identity;
    if (held && now < view_.expires(options_.lease_duration)) return pause(now);
    view_.see_none(now);
    planned_ = Action::Kind::create;
    return;
  }
  observe(*answer, now);
  if (!view_.known()) return pause(now);
  const LeaseRecord& record = view_.record();
  // A Lease with our own name is free, too, as in client-go: it is from an earlier process of this
  // pod.
  const bool free = record.holder.empty() || record.holder == options_.identity ||
                    now >= view_.expires(options_.lease_duration);
  if (free) {
    planned_ = Action::Kind::update;
  } else if (auto annotated = annotate()) {
    planned_ = Action::Kind::annotate;
    annotated_ = std::move(*annotated);
  } else {
    pause(now);
  }
}

bool LeaseSteps::stop(Clock::time_point now) {
  const bool led = leading(now);
  leading_until_ = {};
  return led || pending_ == Action::Kind::create || pending_ == Action::Kind::update;
}

void LeaseSteps::observe(const std::string& object, Clock::time_point now) {
  view_.see(object, now);
  if (view_.known() && view_.record().holder != options_.identity) leading_until_ = {};
}

// A leader returns exactly in time.
void LeaseSteps::pause(Clock::time_point now) {
  wait_until_ = now + options_.retry_period;
  if (leading(now) || is_punctual()) return;
  wait_until_ += jitter();
}

std::chrono::milliseconds LeaseSteps::jitter() {
  std::uniform_int_distribution<std::int64_t> spread(0, options_.retry_period.count());
  return std::chrono::milliseconds(spread(random_));
}

Task<> give_back(Client& client, LeaseView view, std::string identity, WallTime now) {
  const auto key = view.key();
  const Deadline deadline = deadline_after(kReleaseTimeout);
  auto result = co_await client.get(resources::kLeases, key, deadline);
  if (result) {
    view.see(*result, Clock::now());
    if (!view.known() || view.record().holder != identity) co_return;
    result =
        co_await client.update(resources::kLeases, key, view.freed(now, Clock::now()), deadline);
  }
  if (!result) {
    kLog.warning("lease not given back, others wait until it runs out",
                 {{"lease", key.to_string()}, {"error", result.error().message}});
  }
}

LeaseElection::LeaseElection(Client& client, LeaseOptions options,
                             std::function<void(bool leading)> on_change)
    : LeaseElection(client, options, std::move(on_change),
                    std::make_unique<LeaseSteps>(options, random_seed())) {}

LeaseElection::LeaseElection(Client& client, LeaseOptions options,
                             std::function<void(bool leading)> on_change,
                             std::unique_ptr<LeaseSteps> steps)
    : client_(client),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      steps_(std::move(steps)) {}

void LeaseElection::start(TaskGroup& group) {
  group.spawn("lease " + options_.key.to_string(), [this] { return run(); });
}

Task<Result<std::string>> LeaseElection::perform(LeaseSteps::Action action) {
  switch (action.kind) {
    case LeaseSteps::Action::Kind::create:
      co_return co_await client_.create(resources::kLeases, options_.key.ns,
                                        std::move(action.object), action.until);
    case LeaseSteps::Action::Kind::update:
    case LeaseSteps::Action::Kind::annotate:
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
      LeaseSteps::Action action = steps_->next(Clock::now(), options_.clock());
      notify();
      if (action.kind == LeaseSteps::Action::Kind::wait) {
        co_await sleep_until(action.until);
        continue;
      }
      const bool reads = action.kind == LeaseSteps::Action::Kind::read;
      const auto answer = co_await perform(std::move(action));
      steps_->on_answer(answer, Clock::now());
      // A missing Lease and a conflict are part of normal operation.
      const bool is_failure = !answer && !(reads && answer.error().code == ErrorCode::not_found) &&
                              answer.error().code != ErrorCode::conflict;
      if (is_failure && failures.check(to_string(answer.error().code), Clock::now()).pass) {
        kLog.warning("lease not reachable",
                     {{"lease", options_.key.to_string()}, {"error", answer.error().message}});
      }
      notify();
    }
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  const bool may_hold = steps_->stop(Clock::now());
  notify();
  if (!may_hold) co_return;
  co_await asio::this_coro::reset_cancellation_state();
  co_await give_back(client_, LeaseView(options_.key, {}, {}, options_.cleared_annotation),
                     options_.identity, options_.clock());
}

void LeaseElection::notify() {
  const bool leading = steps_->leading(Clock::now());
  if (leading == leading_) return;
  leading_ = leading;
  kLog.info(leading ? "leading" : "not leading any more", {{"lease", options_.key.to_string()}});
  on_change_(leading);
}

}  // namespace gitops::k8s
