#include "app-proxy/runtime/runtime_registration.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

using control_plane::RuntimeError;
using control_plane::RuntimeStatusItem;
using State = RuntimeStatusItem::State;

constexpr std::size_t kIvBytes = 16;

Secret new_iv() {
  return Secret(hex_encode(random_bytes(kIvBytes)));
}

}  // namespace

RuntimeRegistration::RuntimeRegistration(const Executor& executor, Dependencies dependencies,
                                         std::function<RuntimeFacts()> facts, Options options)
    : dependencies_(std::move(dependencies)),
      changed_(executor),
      facts_(std::move(facts)),
      options_(std::move(options)) {
  dependencies_.identity.set(dependencies_.identity.secret());
}

void RuntimeRegistration::start(TaskGroup& group) {
  group.spawn("registration", [this] {
    return run("registration", Who::everyone, &RuntimeRegistration::maintain_registration,
               registration_error_);
  });
  if (dependencies_.argocd && !options_.argocd_account.empty()) {
    group.spawn("argocd-token", [this] {
      return run("argocd-token", Who::leader, &RuntimeRegistration::maintain_argocd_token,
                 argocd_error_);
    });
  } else {
    argocd_error_.emplace();
  }
  group.spawn("repo-creds", [this] {
    return run("repo-creds", Who::leader, &RuntimeRegistration::maintain_repo_creds,
               repo_creds_error_);
  });
  group.spawn("status of the runtime", [this] {
    return run("status", Who::leader, &RuntimeRegistration::report_status, status_error_);
  });
  group.spawn("changes of the leader", [this]() -> Task<> {
    while (true) {
      (void)co_await dependencies_.leadership.changed().wait();
      changed_.notify_all();
    }
  });
}

Task<> RuntimeRegistration::run(std::string name, Who who, Round round,
                                std::optional<std::string>& error) {
  auto pause = options_.retry;
  while (true) {
    const auto done = co_await (this->*round)();
    const std::string now = done ? std::string() : done.error().message;
    if (who == Who::leader && !dependencies_.leadership.leads()) {
      error.reset();
    } else if (now != error) {
      if (done) {
        log_.info("a part of the runtime works again", {{"part", name}});
      } else {
        log_.warning("a part of the runtime does not work", {{"part", name}, {"reason", now}});
      }
      error = now;
    }
    pause = done ? options_.retry : std::min<Clock::duration>(2 * pause, options_.period);
    (void)co_await changed_.wait(deadline_after(done ? options_.period : pause));
  }
}

Task<Result<void>> RuntimeRegistration::maintain_registration() {
  const Deadline deadline = deadline_after(options_.timeout);
  auto object = co_await dependencies_.cluster.get(
      k8s::resources::kSecrets, {options_.own_namespace, std::string(kRuntimeSecret)}, deadline);
  if (!object && object.error().code != ErrorCode::not_found) {
    co_return fail("Secret codefresh-token", std::move(object.error()));
  }
  const std::string before = object ? std::move(*object) : std::string();
  RuntimeSecret stored = before.empty() ? RuntimeSecret() : read_runtime_secret(before);
  const bool is_refused = refused_ >= options_.refusals;
  switch (secret_step({.stored = stored,
                       .known = known(),
                       .has_user_token = !dependencies_.user_token.current().empty(),
                       .is_leader = dependencies_.leadership.leads(),
                       .is_refused = is_refused})) {
    case SecretStep::keep:
      if (!is_refused) enrolled_.reset();
      dependencies_.identity.set(std::move(stored));
      co_await check_token(deadline);
      co_return Result<void>();
    case SecretStep::write: {
      // The stored secret is newer than the configured one.
      RuntimeSecret content = known();
      if (!stored.token.empty()) content.token = stored.token;
      if (!stored.iv.empty()) content.iv = stored.iv;
      if (content.iv.empty()) content.iv = new_iv();
      auto done = co_await store(kRuntimeSecret,
                                 runtime_secret_object(options_.own_namespace, content, before),
                                 !before.empty(), deadline);
      if (!done) co_return done;
      log_.info("Secret codefresh-token was made again");
      dependencies_.identity.set(std::move(content));
      co_return Result<void>();
    }
    case SecretStep::enroll:
      if (is_refused && stored.is_whole()) {
        // The control plane may accept the token again, or another replica may have stored a newer
        // one. A new registration costs the users' Git tokens.
        dependencies_.identity.set(std::move(stored));
        const auto identity = co_await dependencies_.control_plane.own_identity(deadline);
        token_checked_ = Clock::now();
        if (identity) refused_ = 0;
        if (identity) co_return Result<void>();
        if (identity.error().code != ErrorCode::unauthenticated) {
          co_return fail("check of the runtime's token", identity.error());
        }
        if (!dependencies_.leadership.leads()) break;
      }
      co_return co_await enroll(before, deadline);
    case SecretStep::wait:
      break;
  }
  co_return fail(ErrorCode::unavailable,
                 dependencies_.user_token.current().empty()
                     ? "there is no Secret codefresh-token, and no USER_TOKEN to register with"
                     : "another replica registers the runtime");
}

Task<Result<void>> RuntimeRegistration::enroll(std::string_view before, Deadline deadline) {
  if (!enrolled_) {
    auto token = co_await dependencies_.control_plane.create_runtime(
        options_.installation, dependencies_.user_token.current(), deadline);
    if (!token) co_return fail("registration", std::move(token.error()));
    enrolled_ = RuntimeSecret{.token = std::move(*token), .iv = new_iv()};
  }
  // Earlier Git tokens were encrypted for another runtime; the integrations detect that.
  auto done = co_await store(kRuntimeSecret,
                             runtime_secret_object(options_.own_namespace, *enrolled_, before),
                             !before.empty(), deadline);
  if (!done) co_return done;
  log_.info("the runtime is registered", {{"runtime", options_.installation.name}});
  dependencies_.identity.set(std::move(*enrolled_));
  enrolled_.reset();
  ++registrations_;
  changed_.notify_all();
  refused_ = 0;
  token_checked_ = Clock::now();
  co_return Result<void>();
}

// Stores an object. Does not replace one of another replica: the next round reads it.
Task<Result<void>> RuntimeRegistration::store(std::string_view name, std::string object,
                                              bool exists, Deadline deadline) {
  const std::string context = "Secret " + std::string(name);
  if (exists) {
    auto updated = co_await dependencies_.cluster.update(
        k8s::resources::kSecrets, {options_.own_namespace, std::string(name)}, std::move(object),
        deadline);
    if (!updated) co_return fail(context, std::move(updated.error()));
    co_return Result<void>();
  }
  auto created = co_await dependencies_.cluster.create(
      k8s::resources::kSecrets, options_.own_namespace, std::move(object), deadline);
  if (!created) co_return fail(context, std::move(created.error()));
  co_return Result<void>();
}

// Counts the control plane's refusals of the token in a row.
Task<> RuntimeRegistration::check_token(Deadline deadline) {
  const auto wait = refused_ > 0 ? options_.period : options_.check_period;
  if (dependencies_.user_token.current().empty() || Clock::now() - token_checked_ < wait) co_return;
  const auto identity = co_await dependencies_.control_plane.own_identity(deadline);
  token_checked_ = Clock::now();
  if (identity) refused_ = 0;
  if (!identity && identity.error().code == ErrorCode::unauthenticated) ++refused_;
}

Task<Result<void>> RuntimeRegistration::maintain_argocd_token() {
  // The runtime is registered first, since all other programs wait for it.
  if (!dependencies_.leadership.leads() || known().token.empty()) co_return Result<void>();
  const Deadline deadline = deadline_after(options_.timeout);
  auto object = co_await dependencies_.cluster.get(
      k8s::resources::kSecrets, {options_.own_namespace, std::string(kArgoCdTokenSecret)},
      deadline);
  if (!object && object.error().code != ErrorCode::not_found) {
    co_return fail("Secret argocd-token", std::move(object.error()));
  }
  const std::string before = object ? std::move(*object) : std::string();
  const Secret stored = before.empty() ? Secret() : read_argocd_token(before);
  if (!stored.empty()) {
    if (has_argocd_token_ && Clock::now() - argocd_checked_ < options_.check_period) {
      co_return Result<void>();
    }
    const auto accepted = co_await dependencies_.argocd->is_accepted(stored, deadline);
    // Only a refusal counts: an unreachable server does not prove an invalid token.
    if (!accepted) co_return fail("check of argocd-token", accepted.error());
    if (*accepted) {
      made_argocd_token_ = Secret();
      has_argocd_token_ = true;
      argocd_checked_ = Clock::now();
      co_return Result<void>();
    }
    if (stored == made_argocd_token_) made_argocd_token_ = Secret();
  }
  has_argocd_token_ = false;
  const bool is_new = made_argocd_token_.empty();
  if (is_new) {
    auto token = co_await dependencies_.argocd->create_token(options_.argocd_account, deadline);
    if (!token) {
      if (token.error().code == ErrorCode::unauthenticated && dependencies_.argocd_token) {
        (void)co_await dependencies_.argocd_token->refused();
      }
      co_return std::unexpected(std::move(token.error()));
    }
    made_argocd_token_ = std::move(*token);
  }
  // These tokens do not expire: one that cannot be stored is kept until it can be.
  auto done = co_await store(
      kArgoCdTokenSecret, argocd_token_object(options_.own_namespace, made_argocd_token_, before),
      !before.empty(), deadline);
  if (!done) co_return done;
  log_.info("Secret argocd-token was made");
  made_argocd_token_ = Secret();
  // The next round checks an older one.
  has_argocd_token_ = is_new;
  argocd_checked_ = Clock::now();
  co_return Result<void>();
}

std::optional<RepoCreds> RuntimeRegistration::repo_creds() const {
  auto credential = dependencies_.git_token.credential();
  // Plain HTTP is refused here, unless it is allowed for Git in general.
  const auto repository = dependencies_.files.repository();
  if (credential.password.empty() || !repository) return std::nullopt;
  return RepoCreds{.url = repo_creds_url(repository->at.repository.http),
                   .username = std::move(credential.username),
                   .password = std::move(credential.password)};
}

Task<Result<void>> RuntimeRegistration::maintain_repo_creds() {
  if (!dependencies_.leadership.leads()) co_return Result<void>();
  const auto wanted = repo_creds();
  if (!wanted) co_return Result<void>();
  const Deadline deadline = deadline_after(options_.timeout);
  auto object = co_await dependencies_.cluster.get(
      k8s::resources::kSecrets, {options_.own_namespace, std::string(kRepoCredsSecret)}, deadline);
  if (!object && object.error().code != ErrorCode::not_found) {
    co_return fail("Secret runtime-repo-creds-secret", std::move(object.error()));
  }
  const std::string before = object ? std::move(*object) : std::string();
  const auto step = repo_creds_step(before, *wanted);
  const bool are_others = step == RepoCredsStep::leave;
  if (!std::exchange(are_repo_creds_others_, are_others) && are_others) {
    log_.info("Secret runtime-repo-creds-secret was made by others and stays as it is");
  }
  if (step != RepoCredsStep::write) co_return Result<void>();
  auto done =
      co_await store(kRepoCredsSecret, repo_creds_object(options_.own_namespace, *wanted, before),
                     !before.empty(), deadline);
  if (!done) co_return done;
  log_.info("Secret runtime-repo-creds-secret was written", {{"url", wanted->url}});
  co_return Result<void>();
}

Task<Result<void>> RuntimeRegistration::report_status() {
  if (!dependencies_.leadership.leads()) reported_turn_.reset();
  if (!dependencies_.leadership.leads() || known().token.empty() || !registration_error_)
    co_return Result<void>();
  const Deadline deadline = deadline_after(options_.timeout);
  if (reported_turn_ != turn()) {
    reported_turn_ = turn();
    turn_began_ = Clock::now();
    reported_.clear();
    reported_errors_.reset();
  }
  const auto facts = facts_();
  auto items = status_items(facts, {.has_runtime_secret = registration_error_->empty(),
                                    .argocd_token_error = argocd_error_});
  auto errors = errors_of(items, facts.groups);
  const bool may_change = is_pending(facts.groups);
  const auto& name = options_.installation.name;
  if (items != reported_ || Clock::now() - reported_at_ >= options_.heartbeat) {
    auto reported = co_await dependencies_.control_plane.report_status(name, items, deadline);
    if (!reported) co_return fail("status", std::move(reported.error()));
    reported_ = std::move(items);
    reported_at_ = Clock::now();
  }
  // The first list of a turn clears earlier reports, also when it is empty. It waits for the first
  // checks, which would otherwise change it at once.
  const bool waits =
      !reported_errors_ && may_change && Clock::now() - turn_began_ < options_.first_errors;
  if (waits || reported_errors_ == errors) co_return Result<void>();
  auto reported = co_await dependencies_.control_plane.report_errors(name, errors, deadline);
  if (!reported) co_return fail("errors", std::move(reported.error()));
  reported_errors_ = std::move(errors);
  co_return Result<void>();
}

bool RuntimeRegistration::is_pending(const std::vector<RuntimeGroup>& groups) const {
  return !argocd_error_ || std::ranges::any_of(groups, &RuntimeGroup::is_pending);
}

StatusReport RuntimeRegistration::status() const {
  const auto part = [this](std::string name,
                           const std::optional<std::string>& error) -> StatusEntry {
    if (error) return status_entry(std::move(name), *error);
    const bool leads = dependencies_.leadership.leads();
    return {.name = std::move(name),
            .state = leads ? StatusState::pending : StatusState::standby,
            .message = leads ? "not checked yet" : "another replica leads"};
  };
  return {part("registration", registration_error_), part("argocd-token", argocd_error_),
          are_repo_creds_others_ ? StatusEntry{.name = "repo-creds", .message = "made by others"}
                                 : part("repo-creds", repo_creds_error_),
          part("status at the control plane", status_error_)};
}

std::vector<RuntimeStatusItem> status_items(const RuntimeFacts& facts,
                                            const KnownSecrets& secrets) {
  const auto item = [](std::string name, const std::string& error) {
    return RuntimeStatusItem{.name = std::move(name),
                             .state = error.empty() ? State::successful : State::failed,
                             .description = error};
  };
  const auto unknown = [](std::string name, std::string why) {
    return RuntimeStatusItem{
        .name = std::move(name), .state = State::unknown, .description = std::move(why)};
  };
  // Makes the item of an error that is unset before the first check.
  const auto looked_at = [&](std::string name, const std::optional<std::string>& error) {
    return error ? item(std::move(name), *error) : unknown(std::move(name), "not looked at yet");
  };
  const std::string no_secret =
      secrets.has_runtime_secret ? "" : "there is no Secret codefresh-token";
  std::vector<RuntimeStatusItem> items{item("appProxyStarted", ""),
                                       item("encryptionKey", no_secret),
                                       item("encryptionIv", no_secret)};
  if (!facts.has_argocd) {
    items.push_back(unknown("argoCdState", "no Argo CD is configured"));
    items.push_back(unknown("eventReporterArgoCDToken", "no Argo CD is configured"));
  } else {
    // Before the first check of argocd-token, the first login has not ended either.
    const bool is_known = facts.argocd_error.empty() || secrets.argocd_token_error;
    items.push_back(is_known ? item("argoCdState", facts.argocd_error)
                             : unknown("argoCdState", facts.argocd_error));
    items.push_back(looked_at("eventReporterArgoCDToken", secrets.argocd_token_error));
  }
  items.push_back(facts.has_git_token ? item("runtimeGitToken", "")
                                      : unknown("runtimeGitToken", std::string(kNoGitToken)));
  items.push_back(facts.has_git_token ? looked_at("isc", facts.config_repository_error)
                                      : unknown("isc", "it is not prepared without a Git token"));
  // The default Git source is created with the runtime's other files.
  items.push_back(facts.has_git_token
                      ? looked_at("gitSourceConfigured", facts.config_repository_error)
                      : unknown("gitSourceConfigured", "it is not made without a Git token"));
  items.push_back(item("defaultGitIntegration", facts.git_error));
  items.push_back({.name = "syncMode", .state = State::successful, .description = "HELM"});
  return items;
}

std::vector<RuntimeError> item_errors(const std::vector<RuntimeStatusItem>& items) {
  std::vector<RuntimeError> errors;
  for (const auto& item : items) {
    if (item.state != State::failed) continue;
    errors.push_back(
        {.level = RuntimeError::Level::error, .message = item.name + ": " + item.description});
  }
  return errors;
}

std::vector<RuntimeError> errors_of(std::vector<RuntimeStatusItem> items,
                                    const std::vector<RuntimeGroup>& groups) {
  // Items whose error is part of a group.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kReported = {
      {{"argoCdState", "connectivity"},
       {"defaultGitIntegration", "connectivity"},
       {"isc", "Git sources"},
       {"gitSourceConfigured", "Git sources"}}};
  for (const auto& [item, group] : kReported) {
    if (std::ranges::find(groups, group, &RuntimeGroup::name) == groups.end()) continue;
    std::erase_if(items, [&](const auto& each) { return each.name == item; });
  }
  auto errors = item_errors(items);
  std::ranges::move(errors_of(groups), std::back_inserter(errors));
  return errors;
}

}  // namespace gitops::app_proxy
