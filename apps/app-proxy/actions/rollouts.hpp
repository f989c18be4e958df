#pragma once

#include <cstdint>
#include <string>

#include "app-proxy/actions/answers.hpp"
#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/rollout_patches.hpp"
#include "app-proxy/users/caller.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// User actions on Rollouts and their analyses: in the runtime's own cluster by patches of the
// objects, elsewhere by actions of Argo CD. The account's rules cover Applications, so a user who
// is not an administrator names the Application that has deployed the Rollout. Loop thread only;
// its parts outlive it.
class RolloutActions {
 public:
  // `applications` is null where the runtime has no Argo CD.
  RolloutActions(k8s::Client& cluster, ApplicationActions* applications);

  // An object and the Application that it is part of. Without an Application only administrators
  // may act.
  struct Target {
    std::string ns;
    std::string name;
    argo::AppRef app;
  };
  Task<Result<Outcome>> act(const User& user, RolloutAction action, Target target,
                            Deadline deadline);
  struct Undone {
    bool changed = true;
    std::int64_t new_revision = 0;
  };
  // Returns to `revision`; 0 is the previous one.
  Task<Result<Undone>> undo(const User& user, Target target, std::int64_t revision,
                            Deadline deadline);
  // Sets the image of `container`; "*" means all. Administrators only, since no rule covers it.
  Task<Result<Outcome>> set_image(const User& user, Target target, std::string container,
                                  std::string image, Deadline deadline);
  // Kind of run that can be ended.
  enum class Run { analysis, experiment };
  Task<Result<Outcome>> terminate(const User& user, Run run, Target target, Deadline deadline);

 private:
  enum class Where { here, elsewhere };
  // Checks that the user may act, and returns where the Application's objects are. `kind` is the
  // kind of an object that the Application has deployed.
  Task<Result<Where>> allowed(const User& user, Action action, std::string kind, Target target,
                              Deadline deadline);
  Task<Result<std::string>> read(const User& user, const k8s::Resource& resource,
                                 k8s::ObjectKey key, Deadline deadline);
  Task<Result<void>> send(std::vector<RolloutPatch> patches, k8s::ObjectKey key, Deadline deadline);

  k8s::Client& cluster_;
  ApplicationActions* applications_;
};

// Permission that an action on a Rollout needs. Pure.
Action right_for(RolloutAction action);

}  // namespace gitops::app_proxy
