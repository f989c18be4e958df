#include "app-proxy/runtime/group_reader.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kApplications = "applications";
constexpr const char* kComponents = "components";

RuntimeGroup pending(std::string name, std::string why) {
  return {.name = std::move(name), .unknown = std::move(why), .is_pending = true};
}

// A server that refuses the request is reachable.
bool is_answer(const Error& error) {
  return error.code != ErrorCode::timeout && error.code != ErrorCode::unavailable &&
         error.code != ErrorCode::tls && error.code != ErrorCode::protocol;
}

}  // namespace

GroupReader::GroupReader(Dependencies dependencies, Options options)
    : dependencies_(std::move(dependencies)),
      options_(std::move(options)),
      applications_(pending(kApplications, "not read yet")),
      components_(pending(kComponents, "not read yet")) {}

void GroupReader::start(TaskGroup& group) {
  group.spawn("state of the runtime", [this]() -> Task<> {
    while (true) {
      co_await round();
      (void)co_await dependencies_.leadership.changed().wait(deadline_after(options_.period));
    }
  });
}

Task<> GroupReader::round() {
  if (!dependencies_.leadership.leads()) {
    applications_ = pending(kApplications, "another replica leads");
    components_ = pending(kComponents, "another replica leads");
    argocd_error_.clear();
    workflows_error_.clear();
    unsettled_since_.clear();
    co_return;
  }
  // The groups are pending until the servers have responded, too.
  argocd_error_ = co_await reach(dependencies_.argocd);
  workflows_error_ = co_await reach(dependencies_.workflows);
  const Deadline deadline = deadline_after(options_.timeout);
  co_await read_components(deadline);
  co_await read_applications(deadline);
}

Task<std::string> GroupReader::reach(const Ask& ask) {
  if (!ask) co_return std::string();
  const auto answer = co_await ask(deadline_after(options_.answer_timeout));
  co_return answer || is_answer(answer.error()) ? std::string() : answer.error().message;
}

Task<> GroupReader::read_applications(Deadline deadline) {
  RuntimeGroup found{.name = kApplications};
  if (!dependencies_.git_token.is_set()) {
    found.unknown = kNoGitToken;
    applications_ = std::move(found);
    co_return;
  }
  const std::array<std::string, 2> names = {options_.runtime, "in-cluster"};
  for (const auto& name : names) {
    auto object = co_await dependencies_.cluster.get(k8s::resources::kApplications,
                                                     {options_.own_namespace, name}, deadline);
    if (!object && object.error().code != ErrorCode::not_found) {
      found.unknown = object.error().message;
      continue;
    }
    const auto application = read_application(name, object ? *object : std::string());
    bool is_lasting = false;
    if (is_unsettled(application)) {
      const auto since = unsettled_since_.try_emplace(name, Clock::now()).first->second;
      is_lasting = Clock::now() - since > kSettleTime;
    } else {
      unsettled_since_.erase(name);
    }
    if (auto error = error_of(application, is_lasting); !error.empty()) {
      found.errors.push_back(std::move(error));
    }
  }
  applications_ = std::move(found);
}

Task<> GroupReader::read_components(Deadline deadline) {
  RuntimeGroup found{.name = kComponents};
  // Pods of Workflows are left out: they may be many, and they are not components.
  k8s::ListOptions options{.label_selector = "!workflows.argoproj.io/workflow",
                           .field_selector = "status.phase!=Succeeded,status.phase!=Failed"};
  const auto listed = co_await dependencies_.cluster.list_pages(
      k8s::resources::kPods, options_.own_namespace, std::move(options), deadline,
      [&](std::string_view page) {
        std::ranges::move(pod_errors(page, wall_now()), std::back_inserter(found.errors));
        return Result<void>();
      });
  if (!listed) {
    found.errors.clear();
    found.unknown = listed.error().message;
  }
  components_ = std::move(found);
}

}  // namespace gitops::app_proxy
