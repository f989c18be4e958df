// The exchange of a request and its response as scripts in testdata/transaction: each action that
// the state machine asks a driver for, and each byte it sends. Directives:
//
//   new [draining] [max-held=BYTES]             a connection of a client
//   client TEXT, client ends                    bytes of the client; its end
//   upstream TEXT, upstream ends
//   hang-up                                     the client has closed its side while nothing moves
//   sleep TIME, deadlines
//   forward [gzip] [websocket] [inspected] [kept] [max-body=BYTES]    after "decide"
//   answer STATUS TEXT                          after "decide", "admit", "keep" and "render"
//   room, no-room                               after "await room"
//   admitted                                    after "admit"
//   not-kept                                    after "keep"
//   connected [pooled], not-connected CODE      after "get a … connection"
//   relayed BYTES-IN BYTES-OUT                  after "relay"
#include "common/proxy/transaction_script.hpp"

namespace gitops::proxy {
namespace {

class TransactionScripts : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TransactionScripts, Replays) {
  TransactionScript script;
  test::run_script(GetParam(), [&](test::Directive& directive) { return script.run(directive); });
}

INSTANTIATE_TEST_SUITE_P(Testdata, TransactionScripts,
                         testing::ValuesIn(test::scripts_in(
                             GITOPS_SOURCE_DIR "/tests/common/proxy/testdata/transaction")),
                         test::name_of_script);

}  // namespace
}  // namespace gitops::proxy
