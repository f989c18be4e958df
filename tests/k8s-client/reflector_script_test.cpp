// The reflector as scripts in testdata/reflector: what it does next, and what it knows. Directives:
//
//   new [pages] [page-limit=N]                 a reflector; pages: without streaming lists
//   next                                       its next actions, up to the first that is no wait
//   sleep TIME
//   check VERSION, check-error CODE            the response to a check
//   page VERSION [continue=TOKEN]              a page of a list, the last one without a token
//   page-error CODE
//   open, event VERSION, bookmark VERSION      in a watch
//   initial-events-end VERSION
//   end [CODE]                                 of a watch
//   older-object                               an object of a list that is older than the known one
//
// CODE may be followed by retry-after=TIME and cause=TEXT. A change of the state is printed as "= …".

#include <stdexcept>

#include "k8s-client/reflector.hpp"
#include "support/script.hpp"

namespace gitops::k8s {
namespace {

using test::Directive;
using test::Lines;
using Kind = Reflector::Action::Kind;

class ReflectorScript {
 public:
  Lines run(Directive& directive) {
    lines_.clear();
    const auto& name = directive.name();
    if (name == "new") {
      Reflector::Options options;
      options.streaming_list = !directive.flag("pages");
      options.page_limit = directive.number_option("page-limit", options.page_limit);
      reflector_ = Reflector(options, 0x1234'5678'9abc'def0);
      asked_ = Kind::wait;
      state_.clear();
    } else if (name == "sleep") {
      now_ += directive.duration();
    } else if (name == "next") {
      next();
    } else if (!list(directive) && !watch(directive)) {
      directive.unknown();
    }
    print_state();
    return lines_;
  }

 private:
  void next() {
    auto action = reflector_.next();
    for (; action.kind == Kind::wait; action = reflector_.next()) {
      lines_.push_back("wait " + format_duration(action.delay));
    }
    asked_ = action.kind;
    lines_.push_back(render(action));
  }
  // Refuses a response to something that the reflector did not ask for.
  void expect(Kind kind, const Directive& directive) const {
    if (asked_ != kind) throw std::invalid_argument("not awaited: " + directive.name());
  }
  static std::string render(const Reflector::Action& action) {
    switch (action.kind) {
      case Kind::wait:
        break;
      case Kind::check:
        return "check the server's version";
      case Kind::list:
        return (action.limit == 0 ? "list without pages"
                                  : test::concat("list a page of ", action.limit)) +
               (action.continue_token.empty() ? "" : " continue=" + action.continue_token);
      case Kind::watch:
        return (action.send_initial_events ? "watch with initial events"
                                           : "watch from " + action.resource_version) +
               " for " + format_duration(action.timeout);
    }
    return "?";
  }

  bool list(Directive& directive) {
    const auto& name = directive.name();
    if (name == "check") {
      expect(Kind::check, directive);
      reflector_.on_server_version(directive.word());
    } else if (name == "check-error") {
      expect(Kind::check, directive);
      reflector_.on_check_error(error(directive));
    } else if (name == "page") {
      expect(Kind::list, directive);
      const auto version = directive.word();
      reflector_.on_list_page(version, directive.option("continue").value_or(""));
    } else if (name == "page-error") {
      expect(Kind::list, directive);
      reflector_.on_list_error(error(directive));
    } else if (name == "older-object") {
      reflector_.on_older_object();
    } else {
      return false;
    }
    return true;
  }
  bool watch(Directive& directive) {
    const auto& name = directive.name();
    if (asked_ != Kind::watch) return false;
    if (name == "open") {
      reflector_.on_watch_open(now_);
    } else if (name == "event") {
      reflector_.on_event(directive.word());
    } else if (name == "bookmark") {
      reflector_.on_bookmark(directive.word());
    } else if (name == "initial-events-end") {
      reflector_.on_initial_events_end(directive.word());
    } else if (name == "end") {
      std::optional<Error> failure;
      if (directive.has_word()) failure = error(directive);
      reflector_.on_watch_end(failure ? &*failure : nullptr, now_);
    } else {
      return false;
    }
    return true;
  }
  static Error error(Directive& directive) {
    return {.code = test::error_code(directive.word()),
            .message = "scripted",
            .retry_after = directive.duration_option("retry-after", {}),
            .cause = directive.option("cause").value_or("")};
  }

  void print_state() {
    auto state = reflector_.synced() ? "synced at " + reflector_.resource_version()
                                     : "not synced, " + std::string(reflector_.list_reason());
    if (reflector_.epoch() > 0) state += test::concat(", epoch ", reflector_.epoch());
    if (state != state_) lines_.push_back("= " + state);
    state_ = std::move(state);
  }

  Reflector reflector_{{}, 0};
  Clock::time_point now_ = Clock::time_point() + std::chrono::hours(1);
  Kind asked_ = Kind::wait;  // the last action
  std::string state_;
  Lines lines_;
};

class ReflectorScripts : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ReflectorScripts, Replays) {
  ReflectorScript script;
  test::run_script(GetParam(), [&](Directive& directive) { return script.run(directive); });
}

INSTANTIATE_TEST_SUITE_P(
    Testdata, ReflectorScripts,
    testing::ValuesIn(test::scripts_in(GITOPS_SOURCE_DIR "/tests/k8s-client/testdata/reflector")),
    test::name_of_script);

}  // namespace
}  // namespace gitops::k8s
