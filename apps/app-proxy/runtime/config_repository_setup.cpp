#include "app-proxy/runtime/config_repository_setup.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_files.hpp"
#include "app-proxy/entities/git_source.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kFieldManager = "gitops-app-proxy";
// Annotation of the Lease: the state of the runtime's files, and the replica that has changed it.
constexpr std::string_view kRemovalAnnotation = "gitops-runtime.io/runtime-files";
constexpr std::string_view kRemoved = "removed by ";
constexpr std::string_view kPresent = "present by ";
constexpr std::size_t kReplicaNameBytes = 8;

std::string place_of(const RepositorySpecifier& at) {
  return at.repository.key() + "/" + at.path + "?" + at.ref;
}

}  // namespace

ConfigRepositorySetup::ConfigRepositorySetup(Committer& committer, k8s::Client& cluster,
                                             const RuntimeFiles& files, RuntimeGitToken& token,
                                             Leadership& leadership, Options options)
    : committer_(committer),
      cluster_(cluster),
      files_(files),
      token_(token),
      leadership_(leadership),
      options_(options),
      replica_(hex_encode(random_bytes(kReplicaNameBytes))) {}

void ConfigRepositorySetup::start(TaskGroup& group) {
  group.spawn("shared configuration repository", [this]() -> Task<> {
    auto pause = options_.first_retry;
    while (true) {
      if (!leadership_.leads()) {
        follow_replicas();
        status_ = "another replica prepares it";
        state_ = StatusState::standby;
        last_error_.reset();
        pause = options_.first_retry;
        (void)co_await leadership_.changed().wait(deadline_after(pause));
        continue;
      }
      const auto done = co_await round();
      const auto status =
          done ? std::string("applied by Application ") + files_.runtime : done.error().message;
      if (status != status_) {
        log_.info("the shared configuration repository", {{"status", status}});
        status_ = status;
      }
      state_ = done ? StatusState::ok : StatusState::failed;
      last_error_ = done ? std::string() : done.error().message;
      pause = done ? options_.first_retry : std::min(2 * pause, options_.period);
      (void)co_await leadership_.changed().wait(deadline_after(done ? options_.period : pause));
    }
  });
}

Task<Result<void>> ConfigRepositorySetup::round() {
  const Deadline deadline = deadline_after(options_.timeout);
  follow_replicas();
  const auto repository = files_.repository();
  if (!repository) co_return std::unexpected(repository.error());
  if (repository->is_being_removed) {
    co_return fail(ErrorCode::unavailable, "the runtime is being removed from it");
  }
  if (repository->is_removed) {
    files_put_for_.clear();
    co_return co_await remove_application(*repository, deadline);
  }
  auto credential = token_.credential();
  if (credential.password.empty()) {
    co_return fail(ErrorCode::unauthenticated,
                   "the runtime has no Git token (GIT_PASSWORD); the first Git source makes its "
                   "files, and nothing in the cluster applies them");
  }
  const bool is_due = files_put_for_ != place_of(repository->at) ||
                      Clock::now() - files_put_at_ >= options_.git_period;
  if (is_due) {
    auto put = co_await put_files(*repository, std::move(credential), deadline);
    if (!put) co_return put;
    files_put_for_ = place_of(repository->at);
    files_put_at_ = Clock::now();
  }
  co_return co_await put_application(*repository, deadline);
}

Task<Result<void>> ConfigRepositorySetup::publish_removal(bool is_removed, Deadline deadline) {
  const std::string text =
      std::string(is_removed ? kRemoved : kPresent) + replica_ + " " + std::to_string(++published_);
  co_return co_await leadership_.annotate(
      std::string(kRemovalAnnotation),
      [is_removed, text](std::string_view current) -> std::string {
        const bool is_needed = is_removed || current.starts_with(kRemoved);
        if (is_needed) return text;
        return std::string(current);
      },
      deadline);
}

void ConfigRepositorySetup::follow_replicas() {
  auto now = leadership_.annotation(kRemovalAnnotation);
  if (!now || now == annotation_) return;
  const bool is_first = !annotation_;
  annotation_ = std::move(now);
  // The Lease may show an older text of this process, which knows the state itself.
  if (is_first || annotation_->contains(replica_)) return;
  if (annotation_->starts_with(kRemoved)) *files_.is_removed = true;
  if (annotation_->starts_with(kPresent)) *files_.is_removed = false;
}

Task<Result<void>> ConfigRepositorySetup::put_files(const ConfigRepository& repository,
                                                    GitCredential credential, Deadline deadline) {
  CommitRequest request{.repository = repository.at.repository,
                        .branch = repository.at.ref,
                        .needs_default_branch = options_.default_branch != nullptr,
                        .changes = changes_to_bring_up(repository),
                        .message = "Prepare runtime " + repository.runtime,
                        .author = {.name = "GitOps runtime " + repository.runtime,
                                   .email = "gitops-runtime@noreply.invalid"},
                        .credential = std::move(credential)};
  auto made = co_await committer_.commit(request, deadline);
  if (!made && made.error().subcode == kDefaultBranchUnknown) {
    request.default_branch =
        co_await options_.default_branch(request.repository, request.credential, deadline);
    request.needs_default_branch = false;
    made = co_await committer_.commit(std::move(request), deadline);
  }
  if (made) {
    log_.info("the runtime's files were committed", {{"commit", made->sha}});
    co_return Result<void>();
  }
  if (made.error().subcode == kNothingToCommit) co_return Result<void>();
  co_return fail("the runtime's files", std::move(made.error()));
}

Task<Result<void>> ConfigRepositorySetup::put_application(const ConfigRepository& repository,
                                                          Deadline deadline) {
  auto put = co_await cluster_.patch(
      k8s::resources::kApplications,
      k8s::ObjectKey{repository.runtime_namespace, repository.runtime}, k8s::PatchType::apply,
      runtime_application(repository), deadline, {.field_manager = kFieldManager, .force = true});
  if (!put) co_return fail("the runtime's Application", std::move(put.error()));
  co_return Result<void>();
}

// Deletes the Application of this class together with the files that it applies; Argo CD deletes
// the objects below it. Always returns an error, which names the remaining parts.
Task<Result<void>> ConfigRepositorySetup::remove_application(const ConfigRepository& repository,
                                                             Deadline deadline) {
  const k8s::ObjectKey key{repository.runtime_namespace, repository.runtime};
  const auto removed = [&](const std::string& left) {
    return fail(
        ErrorCode::gone,
        "the runtime was removed from it; a new Git source, or a restart, brings it back" + left);
  };
  const auto there = co_await cluster_.get(k8s::resources::kApplications, key, deadline);
  if (!there && there.error().code == ErrorCode::not_found) co_return removed("");
  const std::string application = "; the Application " + repository.runtime;
  if (!there) co_return removed(application + " may be left: " + there.error().message);
  const auto object = parse_json_object(*there);
  const bool is_ours =
      string_at(object, {"metadata", "labels", "codefresh.io/entity"}) == "runtime";
  if (!is_ours) co_return removed("");
  if (!string_at(object, {"metadata", "deletionTimestamp"}).empty()) {
    co_return removed(application + " is being deleted by Argo CD");
  }
  const auto done = co_await cluster_.remove(k8s::resources::kApplications, key, deadline);
  if (!done && done.error().code != ErrorCode::not_found) {
    co_return removed(application + " is left, delete it: " + done.error().message);
  }
  log_.info("the runtime's Application was deleted", {{"application", repository.runtime}});
  co_return removed(application + " is being deleted by Argo CD");
}

}  // namespace gitops::app_proxy
