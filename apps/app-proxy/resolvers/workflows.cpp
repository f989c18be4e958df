#include "app-proxy/resolvers/workflows.hpp"

#include <utility>

#include "app-proxy/resolvers/arguments.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;
using graphql::Json;

// Returns ["k=v"] for [{name, value}].
std::string parameters_of(InputView list) {
  std::string out = "[";
  for (const auto parameter : list.items()) {
    if (out.size() > 1) out += ',';
    out += json_string(text_of(parameter["name"]) + "=" + text_of(parameter["value"]));
  }
  return out + "]";
}

// Returns the given arguments, under the server's names.
std::string options_of(Call& call) {
  std::string out;
  ObjectWriter writer(out);
  for (const std::string_view name :
       {"nodeFieldSelector", "message", "restartSuccessful", "memoized", "phase", "force"}) {
    if (call[name].exists()) writer.raw(name, call[name].json());
  }
  if (call["outputParameters"].exists()) {
    writer.text("outputParameters", call["outputParameters"].text());
  }
  if (call["parameters"].exists()) writer.raw("parameters", parameters_of(call["parameters"]));
  writer.end();
  return out;
}

}  // namespace

Task<Result<Json>> change_workflow(WorkflowActions& workflows, WorkflowAction action, Call& call) {
  const std::string ns = text_of(call["namespace"]);
  auto done = co_await workflows.act(user_of(call), action, ns, text_of(call["workflowName"]),
                                     options_of(call), call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  std::string metadata;
  ObjectWriter names(metadata);
  names.text("name", done->name);
  names.text("namespace", ns);
  names.end();
  std::string out;
  ObjectWriter writer(out);
  writer.raw("metadata", metadata);
  writer.raw("changed", done->outcome.changed ? "true" : "false");
  writer.text("message", done->outcome.note);
  writer.end();
  co_return Json::trusted(std::move(out));
}

Task<Result<Json>> resubmit_workflow(WorkflowActions& workflows, Call& call) {
  auto done =
      co_await workflows.act(user_of(call), WorkflowAction::resubmit, text_of(call["namespace"]),
                             text_of(call["workflowName"]), options_of(call), call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Json::trusted("{\"newWorkflowName\":" + json_string(done->name) + "}");
}

Task<Result<Json>> submit_workflow(WorkflowActions& workflows, Call& call) {
  std::string options;
  ObjectWriter writer(options);
  if (call["parameters"].exists()) writer.raw("parameters", parameters_of(call["parameters"]));
  for (const std::string_view name : {"generateName", "serviceAccount", "labels"}) {
    if (call[name].exists()) writer.text(name, call[name].text());
  }
  writer.end();
  auto name = co_await workflows.submit(user_of(call), text_of(call["namespace"]),
                                        text_of(call["workflowTemplateName"]), std::move(options),
                                        call.deadline());
  if (!name) co_return std::unexpected(std::move(name.error()));
  co_return Json::trusted("{\"newWorkflowName\":" + json_string(*name) + "}");
}

void add_workflow_types(graphql::Resolvers& to) {
  to.json("WorkflowResubmitResponse");
  to.json("CreateWorkflowFromWorkflowTemplateResponse");
}

}  // namespace gitops::app_proxy
