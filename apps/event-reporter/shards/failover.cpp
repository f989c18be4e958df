#include "event-reporter/shards/failover.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "common/core/json_text.hpp"
#include "event-reporter/shards/lease_owner.hpp"

namespace gitops::reporter {
namespace {

const Log kLog("lease");
constexpr std::chrono::milliseconds kBusyPoll{20};

}  // namespace

FailoverSteps::FailoverSteps(FailoverOptions options) : options_(std::move(options)) {
  for (const auto& [name, newest_renewal] : options_.leases) {
    views_.emplace_back(k8s::ObjectKey{options_.ns, name}, options_.labels, newest_renewal,
                        kWantedBy);
  }
}

FailoverSteps::Action FailoverSteps::next(Clock::time_point now, WallTime wall) {
  using Kind = Action::Kind;
  Clock::time_point wake = list_at_;
  if (held(now)) {
    const auto owner = wanted_by(views_[*lease_]);
    if (!owner.empty() && owner != options_.identity) {
      parting_ = Parting::asked;
      return {.kind = Kind::part,
              .lease = *lease_,
              .object = {},
              .until = std::min(now + options_.handover_grace, held_until_)};
    }
    wake = std::min(wake, held_until_);
  }
  if (!lease_ && seen_ && may_write_) {
    if (const auto next = next_due()) {
      if (due(*next) <= now) lease_ = next;
      wake = std::min(wake, due(*next));
    }
  }
  if (lease_ && may_write_) {
    may_write_ = false;
    sent_at_ = now;
    const k8s::LeaseView& view = views_[*lease_];
    return {.kind = view.known() ? Kind::update : Kind::create,
            .lease = *lease_,
            .object = parting_ == Parting::no
                          ? view.taken(options_.identity, options_.lease_duration, wall, now)
                          : view.freed(wall, now),
            .until = held(now) ? held_until_ : now + options_.retry_period};
  }
  if (!unlabelled_.empty()) {
    const auto lease = unlabelled_.back();
    unlabelled_.pop_back();
    return {.kind = Kind::label,
            .lease = lease,
            .object = views_[lease].with_labels(),
            .until = held(now) ? held_until_ : now + options_.retry_period};
  }
  if (now < list_at_) return {.kind = Kind::wait, .lease = 0, .object = {}, .until = wake};
  list_at_ = now + options_.retry_period;
  return {.kind = Kind::list,
          .lease = 0,
          .object = {},
          .until = held(now) ? std::min(list_at_, held_until_) : list_at_,
          .all = list_all_};
}

void FailoverSteps::on_list(const Result<std::string>& answer, Clock::time_point now) {
  may_write_ = true;
  seen_ = false;
  unlabelled_.clear();
  if (!answer) return;
  // More than one list was missed: the owners could not renew either, or this process was suspended.
  if (seen_at_ && now - *seen_at_ > options_.retry_period * 5 / 2) {
    for (auto& view : views_) view.start_over(now);
  }
  seen_ = see(*answer, now);
  if (!seen_) return;
  seen_at_ = now;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i].known() && !views_[i].labelled()) unlabelled_.push_back(i);
  }
  // Labelling may fail by a conflict with another write, so the next list looks for unlabelled Leases
  // again.
  list_all_ = !unlabelled_.empty();
  if (lease_ && views_[*lease_].record().holder != options_.identity) forget();
}

void FailoverSteps::on_written(const Result<std::string>& answer, Clock::time_point now) {
  if (!answer) {
    // Another process took the Lease. After other failures the next list shows its holder.
    const bool refused =
        answer.error().code == ErrorCode::conflict || answer.error().code == ErrorCode::not_found;
    // The Lease exists but was not listed, so it has no labels.
    if (answer.error().code == ErrorCode::conflict && !views_[*lease_].known()) list_all_ = true;
    if (refused && parting_ == Parting::no && !held(now)) forget();
    return;
  }
  k8s::LeaseView& view = views_[*lease_];
  view.see(*answer, now);
  if (view.record().holder == options_.identity) {
    held_until_ = sent_at_ + options_.renew_deadline;
  } else {
    forget();
  }
}

void FailoverSteps::on_labelled(std::size_t lease, const Result<std::string>& answer,
                                Clock::time_point now) {
  if (answer) views_[lease].see(*answer, now);
}

std::optional<std::size_t> FailoverSteps::held(Clock::time_point now) const {
  return parting_ == Parting::no && now < held_until_ ? lease_ : std::nullopt;
}

std::optional<std::size_t> FailoverSteps::stop() {
  const auto ours = lease_;
  forget();
  return ours;
}

Clock::time_point FailoverSteps::due(std::size_t index) const {
  const k8s::LeaseView& view = views_[index];
  if (!view.since()) return kNever;
  const std::string& holder = view.record().holder;
  // The previous process of this pod holds the Lease.
  if (holder == options_.identity) return {};
  const auto over = holder.empty() ? *view.since() + options_.lease_duration
                                   : view.expires(options_.lease_duration);
  return over + options_.rank_delay * index;
}

std::optional<std::size_t> FailoverSteps::next_due() const {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (due(i) < (first ? due(*first) : kNever)) first = i;
  }
  return first;
}

bool FailoverSteps::see(const std::string& list, Clock::time_point now) {
  JsonParser parser;
  const auto json = parser.parse_object(list, "list of Leases");
  if (!json || !(*json)["items"].is_array()) return false;
  std::unordered_map<std::string_view, std::string> by_name;
  for (const auto item : (*json)["items"].items()) {
    const auto name = item["metadata"]["name"].text();
    if (!name.empty()) by_name.emplace(name, item.to_text());
  }
  for (auto& view : views_) {
    const auto found = by_name.find(view.key().name);
    if (found == by_name.end()) {
      view.see_none(now);
    } else {
      view.see(found->second, now);
    }
  }
  return true;
}

void FailoverSteps::forget() {
  lease_.reset();
  held_until_ = {};
  parting_ = Parting::no;
}

Failover::Failover(k8s::Client& client, FailoverOptions options, Observer& observer)
    : client_(client), options_(options), observer_(observer), steps_(options) {}

void Failover::start(TaskGroup& group) {
  group.spawn("stand in for leases", [this] { return run(); });
}

std::optional<std::size_t> Failover::held() const {
  const auto held = steps_.held(Clock::now());
  return held == reported_ ? held : std::nullopt;
}

Task<> Failover::run() {
  try {
    while (true) {
      auto action = steps_.next(Clock::now(), observer_.now());
      notify();
      co_await perform(std::move(action));
      notify();
    }
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  const auto ours = steps_.stop();
  notify();
  if (!ours) co_return;
  co_await asio::this_coro::reset_cancellation_state();
  co_await k8s::give_back(client_, k8s::LeaseView(steps_.lease(*ours).key(), {}, {}, kWantedBy),
                          options_.identity, observer_.now());
}

Task<> Failover::perform(FailoverSteps::Action action) {
  using Kind = FailoverSteps::Action::Kind;
  switch (action.kind) {
    case Kind::wait:
      co_await sleep_until(action.until);
      break;
    case Kind::list: {
      k8s::ListOptions list;
      list.limit = 0;
      if (!action.all) list.label_selector = k8s::label_selector(options_.labels);
      const auto answer = co_await client_.list(k8s::resources::kLeases, options_.ns,
                                                std::move(list), action.until);
      note(answer);
      steps_.on_list(answer, Clock::now());
      break;
    }
    case Kind::create: {
      const auto answer = co_await client_.create(k8s::resources::kLeases, options_.ns,
                                                  std::move(action.object), action.until);
      note(answer);
      steps_.on_written(answer, Clock::now());
      break;
    }
    case Kind::update: {
      const auto answer =
          co_await client_.update(k8s::resources::kLeases, steps_.lease(action.lease).key(),
                                  std::move(action.object), action.until);
      note(answer);
      steps_.on_written(answer, Clock::now());
      break;
    }
    case Kind::label: {
      const auto answer =
          co_await client_.update(k8s::resources::kLeases, steps_.lease(action.lease).key(),
                                  std::move(action.object), action.until);
      note(answer);
      steps_.on_labelled(action.lease, answer, Clock::now());
      break;
    }
    case Kind::part: {
      const k8s::LeaseView& lease = steps_.lease(action.lease);
      kLog.info("the owner asked for its Lease",
                {{"lease", lease.key().to_string()}, {"by", wanted_by(lease)}});
      co_await finish_work(action.lease, action.until);
      steps_.on_parted();
      break;
    }
  }
}

Task<> Failover::finish_work(std::size_t lease, Deadline deadline) {
  while (observer_.busy(lease) && Clock::now() < deadline) co_await sleep_for(kBusyPoll);
}

// Records the response to a write. A conflict only means that another process wrote first.
void Failover::note(const Result<std::string>& answer) {
  if (answer || answer.error().code == ErrorCode::conflict) return;
  if (failures_.check(to_string(answer.error().code), Clock::now()).pass) {
    kLog.warning("Leases could not be read or written",
                 {{"namespace", options_.ns}, {"error", answer.error().message}});
  }
}

void Failover::notify() {
  const auto held = steps_.held(Clock::now());
  if (held == reported_) return;
  const auto change = [this](std::size_t lease, bool now_held) {
    kLog.info(now_held ? "standing in" : "no longer standing in",
              {{"lease", steps_.lease(lease).key().to_string()}});
    observer_.on_change(lease, now_held);
  };
  if (const auto before = std::exchange(reported_, held)) change(*before, false);
  if (held) change(*held, true);
}

}  // namespace gitops::reporter
