// One list of traffic and of events for every pair of a client and a server of the tunnel, over every
// stack of layers that both have: ours with ours, ours with frp's of each version, and frp's with
// frp's, which shows what ours are measured against.
//
// GITOPS_LONG: 100 MB both ways in each case; otherwise over the main stack, and 20 MB over the others.
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "daemons/tunnel_processes.hpp"
#include "peers/peer_frpc.hpp"
#include "peers/tunnel_bed.hpp"
#include "peers/tunnel_pairs_bed.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

TEST_P(PeerTunnelPair, CarriesAllTrafficAndOutlivesBothEnds) {
  const auto& pair = GetParam();
  server.emplace(pair.server);
  expect_refusal({.token = "guess"},
                 HasSubstr("token in login doesn't match token from configuration"));
  EXPECT_EQ(server->call("GET", "/").status, 404);

  std::optional<AnyClient> client;
  client.emplace(pair, *server, upstream.port(), AnyClient::Options{.pool = 0});
  await_service(*client);
  const auto begin = steady_clock::now();
  expect_a_request();
  expect_bulk_both_ways();
  expect_a_websocket();
  expect_events();
  expect_users_at_a_time();

  // Somebody else wants the name, or the host by another name.
  const auto is_taken =
      AnyOf(HasSubstr("already in use"), HasSubstr("already exists"), HasSubstr("conflict"));
  expect_refusal({}, is_taken);
  if (pair.client != Maker::ours) expect_refusal({.proxy = "other"}, is_taken);
  EXPECT_TRUE(serves());
  if (pair.client != Maker::ours) {
    const auto enough = begin + seconds(AnyClient::kHeartbeatTimeout + 1);
    std::this_thread::sleep_until(enough);  // what must not happen has its time
  }
  EXPECT_EQ(client->sessions(), 1) << client->log();

  server->kill_and_start();
  await_service(*client);
  client.emplace(pair, *server, upstream.port(), AnyClient::Options{.pool = 5});  // kills the other
  await_service(*client);
  expect_a_request();
  expect_users_at_a_time();
  EXPECT_THAT(server->log() + client->log(), Not(HasSubstr("s3cret")));
  EXPECT_THAT(server->log() + client->log(), Not(HasSubstr("runtime-token")));
  client->stop();
  EXPECT_TRUE(wait_until([&] { return server->call("GET", "/").status == 404; }, seconds(10),
                         "the end of the host"));
}

INSTANTIATE_TEST_SUITE_P(All, PeerTunnelPair, testing::ValuesIn(all_pairs()),
                         [](const auto& param) {
                           const auto& pair = param.param;
                           return std::string(name_of(pair.client)) + "To" + name_of(pair.server) +
                                  pair.stack;
                         });

}  // namespace
}  // namespace gitops::test
