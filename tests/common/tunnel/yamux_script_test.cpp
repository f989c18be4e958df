// A yamux session as scripts in testdata/yamux: the frames of both sides, and the events of its
// streams. Directives:
//
//   new [server] [max-streams=N] [receive-window=N] [answer-timeout=TIME]
//   < TYPE …                          a frame of the peer; the same form as the output "> TYPE …"
//   open, write STREAM TEXT, writable, release STREAM BYTES
//   end STREAM, close STREAM, abort STREAM
//   drain, ping, sleep TIME
//   connection blocked|free           whether the path takes bytes; free at first
//   pass BYTES                        of the output on a blocked path
//
// Frames are `data STREAM TEXT`, `update STREAM BYTES`, `ping NUMBER` and `go-away REASON`, each
// with its flags syn, ack, fin, rst.
#include "common/tunnel/yamux_script.hpp"

#include <utility>

namespace gitops::tunnel::yamux {
namespace {

class YamuxScripts : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(YamuxScripts, Replays) {
  YamuxScript script;
  test::run_script(GetParam(), [&](test::Directive& directive) { return script.run(directive); });
}

INSTANTIATE_TEST_SUITE_P(Testdata, YamuxScripts,
                         testing::ValuesIn(test::scripts_in(GITOPS_SOURCE_DIR
                                                            "/tests/common/tunnel/testdata/yamux")),
                         test::name_of_script);

}  // namespace
}  // namespace gitops::tunnel::yamux
