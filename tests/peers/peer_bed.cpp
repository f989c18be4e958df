#include "peers/peer_bed.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace gitops::test {
namespace {

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

}  // namespace

PeerBed::PeerBed(ArgoCdRelease release, PeerClusterOptions options)
    : cluster_(std::move(options)),
      cluster_start_time_(since(started_)),
      argocd_(cluster_, release),
      start_time_(since(started_)) {}

std::optional<std::string> PeerBed::missing(ArgoCdRelease release) {
  if (auto reason = PeerCluster::missing()) return reason;
  if (auto reason = GitServer::missing()) return reason;
  return PeerArgoCd::missing(release);
}

PeerBed& peer_bed(ArgoCdRelease release, PeerClusterOptions options) {
  static std::unique_ptr<PeerBed> bed;  // destroyed at exit, whatever the tests' results
  static std::exception_ptr failure;
  if (failure) std::rethrow_exception(failure);
  if (!bed) {
    try {
      bed = std::make_unique<PeerBed>(release, std::move(options));
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
  }
  return *bed;
}

}  // namespace gitops::test
