// The take-over of shards as scripts in testdata/take-over: who writes which Lease, and who works on
// which shard, by time. Requests take no time. Directives:
//
//   new PODS                       pods that are not started, and an API server without Leases
//   start POD, kill POD, stop POD  kill: as SIGKILL; stop: as SIGTERM
//   run TIME
//   busy POD, idle POD             whether reports in flight end when the shard is requested
//   cut-off POD, reconnect POD     its requests do not arrive
//   suspend POD, resume POD
//   server away|back
//   leases                         the Leases on the API server

#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "event-reporter/shards/failover_fixture.hpp"
#include "support/script.hpp"

namespace gitops::reporter {
namespace {

using test::Directive;
using test::Lines;

class TakeOverScript {
 public:
  Lines run(Directive& directive) {
    lines_.clear();
    const auto& name = directive.name();
    if (name == "new") {
      fixture_ = std::make_unique<FailoverFixture>(directive.number());
      fixture_->latency = {};
      fixture_->trace = [this](const std::string& what) { print(what); };
      return lines_;
    }
    if (!fixture_) throw std::invalid_argument("begin with new");
    if (name == "run") {
      fixture_->run_for(directive.duration());
    } else if (name == "server") {
      fixture_->away = directive.flag("away");
      if (!fixture_->away && !directive.flag("back")) throw std::invalid_argument("away or back?");
    } else if (name == "leases") {
      for (const auto& [lease, object] : fixture_->server.leases) {
        lines_.push_back(lease + ": " + fixture_->describe(lease));
      }
    } else {
      change_pod(directive);
    }
    return lines_;
  }

 private:
  void change_pod(Directive& directive) {
    const auto& name = directive.name();
    const auto pod = directive.number();
    if (name == "start") return fixture_->start(pod);
    if (name == "kill") return fixture_->kill(pod);
    if (name == "stop") return fixture_->stop(pod);
    auto& state = *fixture_->pods.at(pod);
    if (name == "busy" || name == "idle") {
      state.busy = name == "busy";
    } else if (name == "cut-off" || name == "reconnect") {
      state.cut_off = name == "cut-off";
    } else if (name == "suspend" || name == "resume") {
      state.suspended = name == "suspend";
    } else {
      directive.unknown();
    }
  }
  [[nodiscard]] std::string time() const {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << std::setw(6)
         << Seconds(fixture_->now.time_since_epoch()).count();
    return text.str();
  }
  void print(const std::string& what) { lines_.push_back(time() + " " + what); }

  std::unique_ptr<FailoverFixture> fixture_;
  Lines lines_;
};

class TakeOverScripts : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TakeOverScripts, Replays) {
  TakeOverScript script;
  test::run_script(GetParam(), [&](Directive& directive) { return script.run(directive); });
}

INSTANTIATE_TEST_SUITE_P(Testdata, TakeOverScripts,
                         testing::ValuesIn(test::scripts_in(
                             GITOPS_SOURCE_DIR "/tests/event-reporter/shards/testdata/take-over")),
                         test::name_of_script);

}  // namespace
}  // namespace gitops::reporter
