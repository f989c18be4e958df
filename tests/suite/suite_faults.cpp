#include "suite/suite_faults.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ranges>

#include <sys/resource.h>

namespace gitops::test {
namespace {

using Kind = SuiteUsers::Kind;
using std::chrono::milliseconds;

const std::set<Kind> kAll{Kind::version, Kind::application};
const std::set<Kind> kApplication{Kind::application};

// What kind of requests needs this link.
std::set<Kind> users_of(const SuiteLink& link) {
  if (link.from == part::kReporter || link.from == "page") return {};
  // The tunnel-server asks it when a client connects, and app-proxy remembers its users for minutes.
  if (link.to == part::kPlane) return {};
  if (link.to == "argocd" || link.to == "kubernetes") return kApplication;
  return kAll;
}

std::set<Kind> users_of(std::string_view part) {
  return part == part::kReporter || part == part::kPlane ? std::set<Kind>() : kAll;
}

std::function<Task<>()> at_once(std::function<void()> step) {
  return [step = std::move(step)]() -> Task<> {
    step();
    co_return;
  };
}

void add_kills(SuiteBed& bed, std::vector<SuiteFault>& faults) {
  for (const char* name : part::kAll) {
    faults.push_back({.kind = "kill -9",
                      .target = name,
                      .outage = users_of(name),
                      .begin = at_once([&bed, name] { bed.kill(name); }),
                      .end = [&bed, name] { return bed.start_again(name); }});
  }
}

// The statuses that a client meets of a peer in front of it, and after which it tries again. What a peer refuses for
// good, such as 400, 409 and 422 of events, is a matter of tests/faults.
std::vector<int> statuses_of(const SuiteLink& link) {
  if (link.is_tls || link.from == "page" || link.from == "user") return {};
  if (link.to == "argocd" || link.to == "kubernetes") return {401, 403, 409, 422, 429, 500, 503};
  return {401, 403, 429, 500, 502, 503};
}

std::string refusal(int status) {
  const std::string body = R"({"message":"refused by the test"})";
  return "HTTP/1.1 " + std::to_string(status) +
         " Refused\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// A user whom the control plane refuses is refused.
std::set<Kind> users_refused(const SuiteLink& link, int status) {
  const bool is_identity = link.from == part::kAppProxy && link.to == part::kPlane;
  return is_identity && (status == 401 || status == 403) ? kAll : users_of(link);
}

void add_link(const SuiteLink& link, std::vector<SuiteFault>& faults) {
  auto* relay = link.relay;
  faults.push_back({.kind = "cut",
                    .target = link.name(),
                    .outage = users_of(link),
                    .begin = at_once([relay] { relay->close(); }),
                    .end = at_once([relay] { relay->open(); })});
  faults.push_back({.kind = "slow network",
                    .target = link.name(),
                    .outage = {},
                    .begin = at_once([relay] { relay->delay(milliseconds(50)); }),
                    .end = at_once([relay] { relay->open(); })});
  faults.push_back({.kind = "silent network",
                    .target = link.name(),
                    .outage = {},
                    .begin = at_once([relay] { relay->hold(); }),
                    .end = at_once([relay] { relay->release(); })});
  for (const int status : statuses_of(link)) {
    faults.push_back({.kind = std::to_string(status),
                      .target = link.name(),
                      .outage = users_refused(link, status),
                      .begin = at_once([relay, status] { relay->answer_with(refusal(status)); }),
                      .end = at_once([relay] {
                        relay->open();
                        relay->cut();
                      })});
  }
}

void add_disks_and_clock(SuiteBed& bed, std::vector<SuiteFault>& faults) {
  const auto limit_ledger = [&bed](std::uint64_t bytes) {
    if (bed.reporter().runs()) bed.reporter().limit_files(bytes);
  };
  faults.push_back({.kind = "full disk",
                    .target = part::kReporter,
                    .outage = {},
                    .begin = at_once([limit_ledger] { limit_ledger(4096); }),
                    .end = at_once([limit_ledger] { limit_ledger(RLIM_INFINITY); })});
  faults.push_back({.kind = "full disk",
                    .target = part::kPlane,
                    .outage = {},
                    .begin = at_once([&bed] { bed.limit_plane_files(true); }),
                    .end = at_once([&bed] { bed.limit_plane_files(false); })});
  faults.push_back({.kind = "restored backup",
                    .target = part::kPlane,
                    .outage = {},
                    .begin = [&bed] { return bed.back_up_plane(); },
                    .end = [&bed] { return bed.restore_plane(); }});
  for (const auto hours : {std::chrono::hours(5), std::chrono::hours(-5)}) {
    faults.push_back({.kind = "clock jump",
                      .target = part::kReporter,
                      .outage = {},
                      .begin = at_once([&bed, hours] { bed.reporter().set_clock(hours); }),
                      .end = at_once([&bed] { bed.reporter().set_clock({}); })});
  }
}

}  // namespace

std::vector<SuiteFault> suite_faults(SuiteBed& bed) {
  std::vector<SuiteFault> faults;
  add_kills(bed, faults);
  for (const auto& link : bed.links()) add_link(link, faults);
  add_disks_and_clock(bed, faults);
  return faults;
}

SuiteSchedule::SuiteSchedule(std::vector<SuiteFault> faults, std::uint64_t seed)
    : faults_(std::move(faults)), random_(seed) {}

std::pair<const SuiteFault*, const SuiteFault*> SuiteSchedule::next() {
  if (left_.size() < 2) {
    for (const auto& fault : faults_) left_.push_back(&fault);
    for (std::size_t i = left_.size(); i > 1; --i) std::swap(left_[i - 1], left_[pick(i)]);
  }
  const auto* first = left_.back();
  left_.pop_back();
  const auto other = std::ranges::find_if(
      left_ | std::views::reverse,
      [first](const SuiteFault* fault) { return fault->target != first->target; });
  const auto* second = other == std::ranges::rend(left_) ? left_.front() : *other;
  std::erase(left_, second);
  return {first, second};
}

}  // namespace gitops::test
