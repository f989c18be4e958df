#include <cctype>
#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "contract/argocd_contract.hpp"
#include "peers/peer_bed.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(40);

// An Application of its own for each repository, made when it is first asked for.
std::string prepare(PeerBed& bed, const std::string& name) {
  static std::map<std::string, std::string> revisions;
  auto& revision = revisions[name];
  if (!revision.empty()) return revision;
  const auto url = bed.git().create_repository(name);
  revision = bed.git().commit(name, argocd_contract_files(), kArgoCdContractMessage,
                              kArgoCdContractAuthor);
  bed.cluster().create_namespace(name);
  bed.argocd().add_repository(bed.git(), name);
  bed.argocd().create_application(name, url, ".", name);
  EXPECT_TRUE(bed.argocd().wait_for(name, "OutOfSync", "Missing", kTimeLimit));
  bed.argocd().sync(name);
  require_until(
      [&] {
        return bed.argocd().app_field(name,
                                      "{.status.sync.status} {.status.health.status} "
                                      "{.status.operationState.phase} {.operation}") ==
               "Synced Healthy Succeeded ";
      },
      kTimeLimit, "the first sync of " + name);
  return revision;
}

struct PeerArgoCdContract : testing::TestWithParam<ArgoCdCase> {};

TEST_P(PeerArgoCdContract, Holds) {
  GITOPS_REQUIRE_PEERS();
  PeerBed& bed = peer_bed();
  std::string name = "argocd-contract";
  if (GetParam().changes) {
    for (const char* c = GetParam().name; *c != '\0'; ++c) {
      name.push_back(static_cast<char>(std::tolower(*c)));
    }
  }
  const auto revision = prepare(bed, name);
  const ArgoCdPeer peer{
      .url = http::parse_url(bed.argocd().url()).value(),
      .token = bed.argocd().token(),
      .username = "admin",
      .password = bed.argocd().admin_password(),
      .app = name,
      .ns = PeerArgoCd::kNamespace,
      .destination = name,
      .revision = revision,
      .read_app =
          [&] {
            return Json::parse(bed.cluster()
                                   .request("GET", "/apis/argoproj.io/v1alpha1/namespaces/" +
                                                       std::string(PeerArgoCd::kNamespace) +
                                                       "/applications/" + name)
                                   .body);
          },
      .change = [&](FileChanges changes, std::string message) -> Task<> {
        const auto commit = bed.git().commit(name, changes, message, kArgoCdContractAuthor);
        const auto app = Json::parse(bed.argocd().app_json(name, "normal"));
        EXPECT_EQ(app.value("/status/sync/revision"_json_pointer, ""), commit);
        co_return;
      },
  };
  run_coro([&]() -> Task<> { co_await GetParam().run(peer); }, kTimeLimit);
}

INSTANTIATE_TEST_SUITE_P(ArgoCd, PeerArgoCdContract, testing::ValuesIn(argocd_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
