#include "app-proxy/sealing/sealing_keys.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr const char* kControllersLabel = "sealedsecrets.bitnami.com/sealed-secrets-key";
constexpr const char* kSharedLabel = "codefresh.io/sealing-key";
constexpr const char* kIdAnnotation = "codefresh.io/sealing-key-id";

std::string selector(const char* label, const char* value) {
  return std::string(label) + "=" + value;
}

// Returns the name of a Secret. Ids may have characters that are not valid in names of objects.
std::string secret_name(std::string_view id) {
  constexpr std::size_t kBytes = 8;
  return "codefresh-sealing-key-" + hex_encode(bytes_of(sha256(id)).substr(0, kBytes));
}

void sort_newest_first(std::vector<SealingKeySecret>& keys) {
  std::ranges::sort(keys, std::ranges::greater(), [](const SealingKeySecret& key) {
    return std::pair(std::string_view(key.created), std::string_view(key.name));
  });
}

Error no_key(std::string message) {
  return {.code = ErrorCode::unsupported,
          .message = std::move(message),
          .subcode = tool_integration_errors::kNoKey};
}

}  // namespace

SealingKeys::SealingKeys(Dependencies dependencies, Options options)
    : dependencies_(std::move(dependencies)), options_(std::move(options)) {}

void SealingKeys::start(TaskGroup& group) {
  if (!options_.is_shared) return;
  status_ = "not checked yet";
  state_ = StatusState::pending;
  group.spawn("sealing key", [this]() -> Task<> {
    auto pause = options_.first_retry;
    while (true) {
      const auto done = co_await round();
      const auto status = done ? std::string("shared") : done.error().message;
      if (status != status_) {
        log_.info("the sealing key of the account", {{"status", status}});
        status_ = status;
      }
      state_ = done ? StatusState::ok : StatusState::failed;
      pause = done ? options_.first_retry : std::min<Clock::duration>(2 * pause, options_.period);
      co_await sleep_for(done ? options_.period : pause);
    }
  });
}

Task<Result<void>> SealingKeys::round() {
  const Deadline deadline = deadline_after(options_.timeout);
  const auto repository = dependencies_.files.repository();
  if (!repository) co_return std::unexpected(repository.error());
  if (dependencies_.committer == nullptr || dependencies_.reader == nullptr ||
      !dependencies_.token.is_set()) {
    co_return fail(ErrorCode::unauthenticated, "the runtime has no Git token (GIT_PASSWORD)");
  }
  const auto shared = co_await shared_key(*repository, deadline);
  if (!shared) co_return std::unexpected(shared.error());
  const auto present = co_await keys(selector(kSharedLabel, "true"), deadline);
  if (!present) co_return std::unexpected(present.error());
  if (*shared) co_return co_await take(**shared, *present, deadline);
  if (!dependencies_.leadership.leads()) {
    co_return fail(ErrorCode::unavailable, "another replica shares the key");
  }
  const auto key = co_await give(*present, deadline);
  if (!key) co_return std::unexpected(key.error());
  CommitRequest request{.repository = repository->at.repository,
                        .branch = repository->at.ref,
                        .changes = changes_to_share_key(*repository, *key),
                        .message = "Share the sealing key of runtime " + repository->runtime,
                        .author = {.name = "GitOps runtime " + repository->runtime,
                                   .email = "gitops-runtime@noreply.invalid"},
                        .credential = dependencies_.token.credential()};
  const auto made = co_await dependencies_.committer->commit(std::move(request), deadline);
  if (made) {
    log_.info("the sealing key is shared", {{"id", key->id}, {"commit", made->sha}});
    co_return Result<void>();
  }
  // Another runtime was first: the next round uses its key.
  if (made.error().subcode == kNothingToCommit) {
    co_return fail(ErrorCode::conflict, "another runtime has shared a key");
  }
  co_return fail("the sealing key's file", made.error());
}

Task<Result<std::string>> SealingKeys::certificate(bool is_for_others, Deadline deadline) {
  auto shared = co_await keys(selector(kSharedLabel, "true"), deadline);
  if (!shared) co_return std::unexpected(std::move(shared.error()));
  // Only a key that was fetched by its id is trusted, since others may write to the repository.
  if (options_.is_shared && !shared->empty()) co_return std::move(shared->front().certificate);
  if (is_for_others) {
    co_return std::unexpected(no_key(
        options_.is_shared
            ? "the runtimes of the account do not share a sealing key yet: " + status_
            : "the runtimes of the account share no sealing key (SHARE_SEALING_KEY), so only "
              "this runtime can have integrations with credentials"));
  }
  auto own = co_await keys(selector(kControllersLabel, "active"), deadline);
  if (!own) co_return std::unexpected(std::move(own.error()));
  std::erase_if(*own, [](const SealingKeySecret& key) { return !key.id.empty(); });
  if (own->empty()) {
    co_return std::unexpected(no_key("there is no key of Sealed Secrets in namespace " +
                                     options_.own_namespace + ": install its controller there"));
  }
  co_return std::move(own->front().certificate);
}

Task<Result<std::string>> SealingKeys::namespace_of(std::string runtime, Deadline deadline) {
  auto state = co_await dependencies_.control_plane.runtime(runtime, deadline);
  if (!state) co_return std::unexpected(std::move(state.error()));
  if (state->runtime_namespace.empty()) {
    co_return fail(ErrorCode::unavailable,
                   "the control plane does not tell the namespace of runtime " + runtime);
  }
  co_return std::move(state->runtime_namespace);
}

Task<Result<std::vector<SealingKeySecret>>> SealingKeys::keys(std::string selector,
                                                              Deadline deadline) {
  std::vector<SealingKeySecret> all;
  const auto list = co_await dependencies_.cluster.list_pages(
      k8s::resources::kSecrets, options_.own_namespace, {.label_selector = std::move(selector)},
      deadline, [&](std::string_view page) -> Result<void> {
        std::ranges::move(sealing_keys_in(page), std::back_inserter(all));
        return {};
      });
  if (!list) co_return fail("Secrets of sealing keys", list.error());
  sort_newest_first(all);
  co_return all;
}

Task<Result<std::optional<SealingKeyFile>>> SealingKeys::shared_key(
    const ConfigRepository& repository, Deadline deadline) {
  const std::string path = sealing_key_file(repository);
  const auto slash = path.rfind('/');
  const auto read = co_await dependencies_.reader->read(
      {.repository = repository.at.repository,
       .branch = repository.at.ref,
       .folder = path.substr(0, slash),
       .credential = dependencies_.token.credential(),
       .wanted = [name = path.substr(slash + 1)](std::string_view each) { return each == name; }},
      deadline);
  // The repository has no branch yet.
  if (!read && is_missing_branch(read.error())) co_return std::nullopt;
  if (!read) co_return fail("the shared configuration repository", read.error());
  if (read->files.empty()) co_return std::nullopt;
  auto key = read_sealing_key(read->files.front().content);
  if (!key) co_return std::unexpected(std::move(key.error()));
  co_return std::move(*key);
}

// Adds the account's key to the keys of this runtime's controller.
Task<Result<void>> SealingKeys::take(const SealingKeyFile& key,
                                     const std::vector<SealingKeySecret>& present,
                                     Deadline deadline) {
  const bool is_there = std::ranges::any_of(present, [&](const SealingKeySecret& each) {
    return each.id == key.id && each.certificate == key.certificate;
  });
  if (is_there) co_return Result<void>();
  if (!dependencies_.leadership.leads()) {
    co_return fail(ErrorCode::unavailable, "another replica takes the account's key");
  }
  const auto private_key = co_await dependencies_.control_plane.sealing_key(key.id, deadline);
  if (!private_key) co_return fail("the sealing key", private_key.error());
  const auto fits = is_key_of(*private_key, key.certificate);
  if (!fits) co_return fail("the sealing key", fits.error());
  if (!*fits) {
    co_return fail(ErrorCode::invalid_data,
                   "the certificate in the shared configuration repository is not that of the "
                   "control plane's key");
  }
  co_return co_await store(key, *private_key, deadline);
}

// Shares the newest key of this runtime's controller: stores it at the control plane.
Task<Result<SealingKeyFile>> SealingKeys::give(const std::vector<SealingKeySecret>& present,
                                               Deadline deadline) {
  // The key was stored before, and the commit failed.
  if (!present.empty()) {
    co_return SealingKeyFile{.id = present.front().id, .certificate = present.front().certificate};
  }
  const auto own = co_await keys(selector(kControllersLabel, "active"), deadline);
  if (!own) co_return std::unexpected(own.error());
  if (own->empty()) {
    co_return fail(ErrorCode::not_found,
                   "there is no key of Sealed Secrets in namespace " + options_.own_namespace);
  }
  const auto& newest = own->front();
  if (const auto fits = is_key_of(newest.private_key, newest.certificate); !fits || !*fits) {
    co_return fail(ErrorCode::invalid_data,
                   "Secret " + newest.name + " has no RSA key with its certificate");
  }
  // Each copy would be another private key to keep, so it is saved once.
  if (!given_ || given_->certificate != newest.certificate) {
    auto id = co_await dependencies_.control_plane.save_sealing_key(newest.private_key, deadline);
    if (!id) co_return fail("the sealing key", std::move(id.error()));
    given_ = SealingKeyFile{.id = std::move(*id), .certificate = newest.certificate};
  }
  SealingKeyFile key = *given_;
  if (auto stored = co_await store(key, newest.private_key, deadline); !stored) {
    co_return std::unexpected(std::move(stored.error()));
  }
  given_.reset();
  co_return key;
}

Task<Result<void>> SealingKeys::store(const SealingKeyFile& key, const Secret& private_key,
                                      Deadline deadline) {
  const auto& ns = options_.own_namespace;
  const auto name = secret_name(key.id);
  auto made = co_await dependencies_.cluster.create(
      k8s::resources::kSecrets, ns, sealing_key_object(ns, key, private_key), deadline);
  if (!made && made.error().code == ErrorCode::conflict) {
    made = co_await dependencies_.cluster.update(
        k8s::resources::kSecrets, {ns, name}, sealing_key_object(ns, key, private_key), deadline);
  }
  if (!made) co_return fail("Secret " + name, std::move(made.error()));
  log_.info("the runtime has the account's sealing key", {{"id", key.id}, {"secret", name}});
  co_return Result<void>();
}

std::vector<SealingKeySecret> sealing_keys_in(std::string_view list) {
  std::vector<SealingKeySecret> keys;
  const Json json = parse_json_object(list);
  const auto& items = value_at(json, {"items"});
  if (!items.is_array()) return keys;
  for (const Json& item : items) {
    auto certificate = base64_decode(string_at(item, {"data", "tls.crt"}));
    auto private_key = base64_decode(string_at(item, {"data", "tls.key"}));
    if (!certificate || !private_key || certificate->empty() || private_key->empty()) continue;
    keys.push_back({.name = string_at(item, {"metadata", "name"}),
                    .created = string_at(item, {"metadata", "creationTimestamp"}),
                    .id = string_at(item, {"metadata", "annotations", kIdAnnotation}),
                    .certificate = std::move(*certificate),
                    .private_key = Secret(std::move(*private_key))});
  }
  sort_newest_first(keys);
  return keys;
}

std::string sealing_key_object(std::string_view ns, const SealingKeyFile& key,
                               const Secret& private_key) {
  return to_text(Json{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"metadata",
                       {{"name", secret_name(key.id)},
                        {"namespace", ns},
                        {"labels",
                         {{"app.kubernetes.io/managed-by", "gitops-app-proxy"},
                          {kSharedLabel, "true"},
                          {kControllersLabel, "active"}}},
                        {"annotations", {{kIdAnnotation, key.id}}}}},
                      {"type", "kubernetes.io/tls"},
                      {"data",
                       {{"tls.crt", base64_encode(key.certificate)},
                        {"tls.key", base64_encode(private_key.reveal())}}}});
}

}  // namespace gitops::app_proxy
