#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "control-plane/accounts/identity.hpp"

// Scopes of API keys: the operations that a key allows. A key without scopes allows everything that its user may do. A
// scope never adds a permission. Runtimes' tokens and sessions have no scopes.
namespace gitops::control_plane_server {

inline constexpr std::string_view kScopeRead = "read";          // queries, and requests with GET
inline constexpr std::string_view kScopeWrite = "write";        // every change but those of keys
inline constexpr std::string_view kScopeRuntimes = "runtimes";  // registers and deletes runtimes
inline constexpr std::string_view kScopeImages = "images";      // reports images and annotations
// Runtimes accept the key as its user, with all permissions of that user.
inline constexpr std::string_view kScopeAppProxy = "app-proxy";

inline constexpr std::array kScopes{kScopeRead, kScopeWrite, kScopeRuntimes, kScopeImages,
                                    kScopeAppProxy};

// The scopes of the platform for pipelines, which Terraform's codefresh_api_key sends (its documentation lists them).
// Keys may have them, also with a detail: "pipeline:run". They allow nothing here, since there are no pipelines.
inline constexpr std::array<std::string_view, 18> kClassicScopes{"agent",
                                                                 "agents",
                                                                 "audit",
                                                                 "build",
                                                                 "cluster",
                                                                 "clusters",
                                                                 "environments-v2",
                                                                 "github-action",
                                                                 "helm",
                                                                 "kubernetes",
                                                                 "pipeline",
                                                                 "project",
                                                                 "repos",
                                                                 "runner-installation",
                                                                 "step-type",
                                                                 "step-types",
                                                                 "view",
                                                                 "workflow"};

using Scopes = std::vector<std::string_view>;

// Returns the error for a key that has none of these scopes; nothing when it has one, or when the caller has no scopes.
std::optional<Error> scope_refusal(const Caller& caller, std::span<const std::string_view> one_of);
// Returns the error for a key with scopes, which must not manage keys, passwords and users: it could obtain the scopes
// that it lacks. A service account manages them only as an administrator, so that a stolen key makes no others.
std::optional<Error> key_change_refusal(const Caller& caller);

// Returns why these scopes are refused for a key, or an empty text: one of them is neither in kScopes nor in
// kClassicScopes.
std::string scopes_mistake(const std::vector<std::string>& scopes);

}  // namespace gitops::control_plane_server
