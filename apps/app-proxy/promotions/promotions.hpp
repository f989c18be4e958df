#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/committer.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/promotions/promotion.hpp"
#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/users/directory.hpp"
#include "app-proxy/users/rules.hpp"
#include "common/control_plane/graphql.hpp"

// Promotions: the REST routes /api/promotions/commit and /api/promotions/pullRequest. The operator
// of a runtime and users' workflows call them to copy the state of one application in Git to
// another one.
namespace gitops::app_proxy {

enum class PromotionKind { commit, pull_request };

// Body of a request.
struct PromotionRequest {
  control_plane::ApplicationId source;
  control_plane::ApplicationId destination;
  std::string source_commit = {};  // empty: the present commit of its targetRevision
  std::string message = {};
  std::string description = {};  // of the commit
  // Branch of a pull request. It is created from the destination's branch when it does not exist.
  std::string head = {};
  std::string title = {};
  std::string pull_request_description = {};
};
// Parses the body. `invalid_argument` names a missing field. Pure.
Result<PromotionRequest> parse_promotion(PromotionKind kind, std::string_view body);

// Message of the response to a promotion without a difference. Clients compare it.
inline constexpr std::string_view kNothingToPromote =
    "no changes found between source and destination applications";

// Returns the clone URL of an application, if it is at the account's Git host. The runtime's token
// is sent to no other host. Errors have the HTTP status 400. Pure.
Result<RepositoryUrl> repository_of_account(const control_plane::Identity& account,
                                            std::string_view url, Scheme scheme);

// Promotes with the runtime's own Git token, which is sent only to the account's Git host. Loop
// thread.
class Promotions {
 public:
  struct Dependencies {
    control_plane::GraphqlClient& control_plane;
    Rules& rules;
    TreeReader& reader;
    Committer& committer;
    GitHostClient& hosts;
    RuntimeGitToken& token;  // required for promotions
    const UserDirectory& users;
    std::string runtime;
    Scheme scheme = Scheme::https_only;
  };
  // The objects in `dependencies` outlive this one.
  explicit Promotions(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  // Promotes, and returns the response as JSON. Permitted for the runtime itself, for
  // administrators, and for users with PROMOTE_TO for the destination and VIEW for the source.
  // Other users get the same error for a missing application and for one that they may not promote.
  // Errors have the HTTP status of the response.
  Task<Result<std::string>> promote(PromotionKind kind, const User& user, PromotionRequest request,
                                    Deadline deadline);

 private:
  Task<Result<control_plane::PromotionData>> allowed_data(const User& user,
                                                          const PromotionRequest& request,
                                                          Deadline deadline);
  [[nodiscard]] Result<RepositoryUrl> own_repository(std::string_view url) const {
    return repository_of_account(dependencies_.users.own(), url, dependencies_.scheme);
  }
  Task<Result<CommitRequest>> plan(const User& user, const PromotionRequest& request,
                                   const control_plane::PromotionData& data, Deadline deadline);
  Task<Result<std::string>> open_pull_request(const PromotionRequest& request, CommitRequest commit,
                                              Deadline deadline);

  Dependencies dependencies_;
};

}  // namespace gitops::app_proxy
