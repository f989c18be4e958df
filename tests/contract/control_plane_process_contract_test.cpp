// The cases of the double for the program itself.
#include <map>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/store/databases.hpp"
#include "contract/control_plane_contract.hpp"
#include "daemons/control_plane_bed.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using store::Engine;

constexpr std::size_t kGitSources = 70;

// A control plane of either engine as the cases want it.
class ContractBed {
 public:
  explicit ContractBed(Engine engine)
      : bed_({.engine = engine, .flags = {}, .members = {}, .teams = {{"a-team", {kBobId}}}}) {
    bed_.set_git("GITHUB", "https://api.github.example.test",
                 "https://github.example.test/acme/config.git");
    const Json attributes{{{"name", "LABEL"}, {"key", "team"}, {"value", "a"}},
                          {{"name", "CLUSTER"}, {"value", "c1"}}};
    bed_.add_rules(Json::array({{{"entityType", "gitopsApplications"},
                                 {"teams", {"a-team"}},
                                 {"actions", {"SYNC"}},
                                 {"attributes", attributes}}}));
    add_git_sources();
    peer_ = {.url = http::parse_url(bed_.url()).value(),
             .ca_file = bed_.ca_file(),
             .cookie = "__Host-session",
             .account = kAccountId,
             .runtime = "prod",
             .runtime_token = kProdToken,
             .admin = kAnnId,
             .admin_token = kAnnKey,
             .user = kBobId,
             .user_token = kBobKey,
             .team = "a-team",
             .stranger_token = kEveKey,
             .git_sources = kGitSources};
  }
  [[nodiscard]] const ControlPlanePeer& peer() const { return peer_; }

 private:
  void add_git_sources() {
    for (std::size_t i = 0; i < kGitSources; ++i) {
      const auto name = "source-" + std::to_string(i);
      const Json application{
          {"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata",
           {{"name", name},
            {"namespace", "gitops"},
            {"uid", "uid-" + name},
            {"labels", {{"codefresh.io/entity", "git-source"}}}}},
          {"spec",
           {{"destination", {{"server", "https://kubernetes.default.svc"}}},
            {"source",
             {{"repoURL", "https://git.example.test/acme/" + name + ".git"}, {"path", "apps"}}}}},
          {"status", {{"sync", {{"status", "Synced"}}}, {"health", {{"status", "Healthy"}}}}}};
      const auto reply = bed_.program().post_application(kProdToken, application.dump(),
                                                         static_cast<std::int64_t>(i) + 1);
      if (!reply.ok()) throw std::runtime_error(reply.body);
    }
  }

  ControlPlaneBed bed_;
  ControlPlanePeer peer_;
};

struct ControlPlaneProcessContract : testing::TestWithParam<std::tuple<Engine, ControlPlaneCase>> {
  static const ControlPlanePeer& peer(Engine engine) {
    auto& bed = beds[engine];
    if (!bed) bed = std::make_unique<ContractBed>(engine);
    return bed->peer();
  }
  static void TearDownTestSuite() { beds.clear(); }

  static inline std::map<Engine, std::unique_ptr<ContractBed>> beds;
};

TEST_P(ControlPlaneProcessContract, Holds) {
  const auto& peer = ControlPlaneProcessContract::peer(std::get<0>(GetParam()));
  const auto run = std::get<1>(GetParam()).run;
  run_coro([&]() -> Task<> { co_await run(peer); }, std::chrono::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(ControlPlane, ControlPlaneProcessContract,
                         testing::Combine(testing::Values(Engine::sqlite, Engine::postgres),
                                          testing::ValuesIn(control_plane_cases())),
                         [](const auto& info) {
                           return engine_name(std::get<0>(info.param)) +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace gitops::test
