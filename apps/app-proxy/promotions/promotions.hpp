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

// Promotions: the REST routes /api/promotions/commit and /api/promotions/pullRequest, by which the
// operator of a runtime and people's workflows bring what one application has in Git to another one.
namespace gitops::app_proxy {

enum class PromotionKind { commit, pull_request };

// The body of a request.
struct PromotionRequest {
  control_plane::ApplicationId source;
  control_plane::ApplicationId destination;
  std::string source_commit = {};  // empty: what its targetRevision is now
  std::string message = {};
  std::string description = {};  // of the commit
  // Of a pull request; its branch is made from the destination's when there is none.
  std::string head = {};
  std::string title = {};
  std::string pull_request_description = {};
};
// invalid_argument with what is missing. Pure.
Result<PromotionRequest> parse_promotion(PromotionKind kind, std::string_view body);

// What the answer of a promotion without a difference says; clients compare it.
inline constexpr std::string_view kNothingToPromote =
    "no changes found between source and destination applications";

// A clone URL of an application, if it is at the account's Git host: the runtime's token goes nowhere
// else. Errors have the HTTP status 400. Pure.
Result<RepositoryUrl> repository_of_account(const control_plane::Identity& account,
                                            std::string_view url, Scheme scheme);

// Promotes with the runtime's own Git token, which therefore goes to the account's Git host alone.
// Loop thread.
class Promotions {
 public:
  struct Dependencies {
    control_plane::GraphqlClient& control_plane;
    Rules& rules;
    TreeReader& reader;
    Committer& committer;
    GitHostClient& hosts;
    RuntimeGitToken& token;  // nothing is promoted without it
    const UserDirectory& users;
    std::string runtime;
    Scheme scheme = Scheme::https_only;
  };
  // What `parts` names outlives this object.
  explicit Promotions(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  // Returns the answer as JSON. Allowed to the runtime itself, to administrators, and by the right
  // PROMOTE_TO for the destination with VIEW for the source; for others an application that is not
  // there and one that they may not promote are the same. Errors have the HTTP status of the answer.
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
