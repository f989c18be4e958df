#include "app-proxy/resolvers/rollouts.hpp"

#include <array>
#include <utility>

#include "app-proxy/resolvers/arguments.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;

RolloutActions::Target target_of(Call& call, std::string_view name) {
  return {.ns = text_of(call["namespace"]),
          .name = text_of(call[name]),
          .app = {.name = text_of(call["application"]), .ns = text_of(call["appNamespace"])}};
}

RolloutAction action_of(std::string_view word) {
  using enum RolloutAction;
  constexpr std::array kWords = {
      std::pair{std::string_view("PAUSE"), pause},
      std::pair{std::string_view("RESUME"), resume},
      std::pair{std::string_view("PROMOTE"), promote},
      std::pair{std::string_view("PROMOTE_FULL"), promote_full},
      std::pair{std::string_view("SKIP_CURRENT_STEP"), skip_current_step},
      std::pair{std::string_view("SKIP_ALL_STEPS"), skip_all_steps},
      std::pair{std::string_view("ABORT"), abort},
      std::pair{std::string_view("RETRY"), retry},
      std::pair{std::string_view("RESTART"), restart},
  };
  for (const auto& [name, action] : kWords) {
    if (name == word) return action;
  }
  return pause;  // the schema has checked it
}

}  // namespace

Task<Result<Outcome>> rollout_action(RolloutActions& rollouts, Call& call) {
  co_return co_await rollouts.act(user_of(call), action_of(call["action"].text()),
                                  target_of(call, "rolloutName"), call.deadline());
}

Task<Result<RollbackView>> rollout_rollback(RolloutActions& rollouts, Call& call) {
  auto target = target_of(call, "rolloutName");
  const std::string name = target.name;
  auto done = co_await rollouts.undo(user_of(call), std::move(target),
                                     call["rolloutRevision"].integer(), call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return RollbackView{.rollout = name, .new_revision = done->new_revision};
}

Task<Result<Outcome>> set_rollout_image(RolloutActions& rollouts, Call& call) {
  co_return co_await rollouts.set_image(user_of(call), target_of(call, "rolloutName"),
                                        text_of(call["container"]), text_of(call["image"]),
                                        call.deadline());
}

Task<Result<Outcome>> terminate_run(RolloutActions& rollouts, RolloutActions::Run run, Call& call) {
  co_return co_await rollouts.terminate(user_of(call), run, target_of(call, "name"),
                                        call.deadline());
}

void add_rollout_types(graphql::Resolvers& to) {
  to.type<Outcome>("RolloutActionResponse",
                   {{"changed", &Outcome::changed}, {"message", &Outcome::note}});
  to.type<RollbackView>("RolloutRollbackResponse", {{"rollout", &RollbackView::rollout},
                                                    {"newRevision", &RollbackView::new_revision}});
}

}  // namespace gitops::app_proxy
