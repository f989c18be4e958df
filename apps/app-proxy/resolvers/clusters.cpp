#include "app-proxy/resolvers/clusters.hpp"

#include <string>
#include <utility>

#include "app-proxy/resolvers/arguments.hpp"

namespace gitops::app_proxy {

Task<Result<void>> remove_cluster(ManagedClusters& clusters, const RuntimeFiles& files,
                                  graphql::Call& call) {
  const std::string server = text_of(call["server"]);
  const std::string runtime = text_of(call["runtime"]);
  if (runtime != files.runtime) {
    co_return fail(ErrorCode::invalid_argument, "runtime: this is runtime " + files.runtime);
  }
  co_return co_await clusters.remove(server, requested_by(user_of(call), files.runtime),
                                     commit_deadline(call));
}

}  // namespace gitops::app_proxy
