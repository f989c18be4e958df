#include "app-proxy/resolvers/tool_integrations.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/commits.hpp"
#include "app-proxy/resolvers/config_commit.hpp"
#include "app-proxy/sealing/tool_integration.hpp"
#include "common/core/crypto.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;
using Operation = IntegrationChange::Operation;

Operation operation_of(InputView value) {
  if (value.text() == "DELETE") return Operation::remove;
  return value.text() == "UPDATE" ? Operation::update : Operation::create;
}

std::string_view verb_of(Operation operation) {
  if (operation == Operation::remove) return "Delete";
  return operation == Operation::update ? "Update" : "Create";
}

Result<ToolIntegration> integration_of(InputView input) {
  const auto metadata = input["metadata"];
  SentIntegration sent{.name = text_of(metadata["name"]),
                       .type = text_of(metadata["type"]),
                       .provider_info = text_of(input["providerInfo"])};
  if (input["secureData"].exists()) sent.secure_data = Secret(text_of(input["secureData"]));
  for (const auto consumer : metadata["enabledIntegrationConsumers"].items()) {
    if (!consumer.text().empty()) sent.consumers.push_back(text_of(consumer));
  }
  if (!metadata["isAllRuntimes"].is_true()) {
    for (const auto runtime : metadata["runtimes"].items()) {
      if (!runtime.text().empty()) sent.runtimes.push_back(text_of(runtime));
    }
    if (sent.runtimes.empty() && operation_of(input["operation"]) != Operation::remove) {
      return fail(ErrorCode::invalid_argument,
                  "metadata.runtimes: expected a runtime, or isAllRuntimes");
    }
  }
  return read_tool_integration(sent);
}

// Returns the integration's files in the repository.
Task<Result<std::vector<IntegrationFile>>> files_of(const ConfigTarget& target, TreeReader& reader,
                                                    std::string name, Deadline deadline) {
  // The job on the pool may outlive this coroutine.
  const auto found = std::make_shared<std::vector<IntegrationFile>>();
  const auto read =
      co_await reader.read({.repository = target.repository.at.repository,
                            .branch = target.repository.at.ref,
                            .folder = target.repository.resources_folder(),
                            .credential = {.username = git_username_of(target.account),
                                           .password = target.account.access.token},
                            .wanted =
                                [found, name](std::string_view path) {
                                  if (auto file = integration_file_of(path, name))
                                    found->push_back(std::move(*file));
                                  return false;
                                }},
                           deadline);
  // The repository has no branch yet.
  if (!read && is_missing_branch(read.error())) {
    co_return std::vector<IntegrationFile>();
  }
  if (!read) co_return std::unexpected(public_commit_error(read.error()));
  co_return *found;
}

Task<Result<std::vector<IntegrationPlace>>> places_of(const ToolIntegration& integration,
                                                      SealingKeys& keys, const RuntimeFiles& files,
                                                      Deadline deadline) {
  std::vector<IntegrationPlace> places;
  for (const auto& runtime : integration.runtimes) {
    IntegrationPlace place{
        .runtime = runtime, .runtime_namespace = files.runtime_namespace, .certificate = {}};
    if (runtime != files.runtime) {
      auto ns = co_await keys.namespace_of(runtime, deadline);
      if (!ns) co_return std::unexpected(std::move(ns.error()));
      place.runtime_namespace = std::move(*ns);
    }
    places.push_back(std::move(place));
  }
  if (places.empty()) places.emplace_back();
  if (!integration.credentials || integration.credentials->empty()) co_return places;
  const bool is_for_others = places.size() > 1 || places.front().runtime != files.runtime;
  const auto certificate = co_await keys.certificate(is_for_others, deadline);
  if (!certificate) co_return std::unexpected(certificate.error());
  for (auto& place : places) place.certificate = *certificate;
  co_return places;
}

// Returns the key of the digests that show unchanged credentials; empty before the registration.
Secret digest_key(RuntimeIdentity& runtime) {
  const auto secret = runtime.secret();
  if (secret.token.empty()) return {};
  return hkdf_sha256(secret.token.reveal(), secret.iv.reveal(),
                     "gitops-runtime: credentials of integrations", sizeof(Sha256Sum));
}

}  // namespace

Task<Result<graphql::Json>> apply_integration(GitIntegrations& git, Committer& committer,
                                              TreeReader& reader, SealingKeys& keys,
                                              RuntimeIdentity& runtime, const RuntimeFiles& files,
                                              Call& call) {
  const auto input = call["input"];
  auto integration = integration_of(input);
  if (!integration) co_return std::unexpected(std::move(integration.error()));
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  IntegrationChange change{.operation = operation_of(input["operation"]),
                           .integration = std::move(*integration),
                           .places = {},
                           .present = {},
                           .digest_key = digest_key(runtime)};
  if (change.digest_key.empty()) {
    co_return fail(ErrorCode::unavailable, "the runtime is not registered yet");
  }
  const std::string name = change.integration.name;
  auto present = co_await files_of(*target, reader, name, deadline);
  if (!present) co_return std::unexpected(std::move(present.error()));
  change.present = std::move(*present);
  if (change.operation != Operation::remove) {
    auto places = co_await places_of(change.integration, keys, files, deadline);
    if (!places) co_return std::unexpected(std::move(places.error()));
    change.places = std::move(*places);
  }
  auto changes = changes_to_apply(target->repository, change);
  if (!changes) co_return std::unexpected(std::move(changes.error()));
  bool is_changed = false;
  if (!changes->empty()) {
    const auto done = co_await commit_config(
        *target, committer, std::move(*changes),
        std::string(verb_of(change.operation)) + " integration " + name, deadline);
    if (!done) co_return std::unexpected(done.error());
    is_changed = *done;
  }
  co_return graphql::Json::trusted(is_changed ? R"({"changed":true})" : R"({"changed":false})");
}

}  // namespace gitops::app_proxy
