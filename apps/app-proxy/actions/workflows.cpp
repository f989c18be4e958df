#include "app-proxy/actions/workflows.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/actions/entities.hpp"
#include "common/core/json_text.hpp"
#include "common/core/log.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kPeer = "Argo Workflows";
// Fields to read of a Workflow. Its nodes may be megabytes.
constexpr const char* kFields =
    "metadata.name,metadata.namespace,metadata.labels,metadata.annotations,spec.suspend,"
    "spec.shutdown,status.phase,status.finishedAt";

Error shown(Error error) {
  return public_action_error(std::move(error), kPeer);
}

// Returns the name of an object; empty when the answer is none of the server.
std::string object_name(std::string_view object) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "object");
  return root ? std::string((*root)["metadata"]["name"].text()) : std::string();
}

// Checks that an answer is an object, for which rules can be checked.
Result<void> check_read(std::string_view object, std::string_view kind) {
  if (!object_name(object).empty()) return {};
  return std::unexpected(
      shown({.code = ErrorCode::protocol, .message = "the answer is no " + std::string(kind)}));
}

// Returns the name of the Workflow that the server has changed or made.
Result<std::string> name_in(std::string_view object) {
  auto name = object_name(object);
  if (!name.empty()) return name;
  return std::unexpected(
      Error{.code = ErrorCode::unavailable,
            .message = std::string(kPeer) +
                       " has not answered with a Workflow; look at the Workflows before you "
                       "repeat this",
            .subcode = action_errors::kNotAvailable});
}

}  // namespace

std::string_view to_string(WorkflowAction action) {
  using enum WorkflowAction;
  switch (action) {
    case terminate:
      return "terminate";
    case stop:
      return "stop";
    case suspend:
      return "suspend";
    case resume:
      return "resume";
    case retry:
      return "retry";
    case resubmit:
      return "resubmit";
    case set:
      return "set";
    case remove:
      return "delete";
  }
  return {};
}

Action right_for(WorkflowAction action) {
  using enum WorkflowAction;
  switch (action) {
    case terminate:
    case remove:
      return Action::terminate;
    case stop:
    case suspend:
      return Action::stop;
    case resubmit:
      return Action::resubmit;
    case resume:
    case retry:
    case set:
      return Action::restart;
  }
  return Action::terminate;
}

WorkflowActions::WorkflowActions(argo::WorkflowsClient& workflows, Credential& token,
                                 const Rules& rules, std::string runtime)
    : workflows_(workflows), token_(token), rules_(rules), runtime_(std::move(runtime)) {}

template <class Ask>
auto WorkflowActions::with_token(Ask ask) -> decltype(ask()) {
  const Secret sent = token_.current();
  auto answer = co_await ask();
  // Another request may have fetched the newer token already.
  if (!answer && answer.error().code == ErrorCode::unauthenticated &&
      (!(token_.current() == sent) || co_await token_.refused())) {
    answer = co_await ask();
  }
  co_return answer;
}

Error WorkflowActions::missing(const User& user, Error error, std::string_view kind,
                               const std::string& name) const {
  if (error.code != ErrorCode::not_found) return shown(std::move(error));
  if (!user.is_admin) return forbidden_action("no such object, or no right for it");
  return {.code = ErrorCode::not_found,
          .message = "there is no " + std::string(kind) + " " + name,
          .http_status = 404,
          .subcode = action_errors::kNotFound};
}

Task<Result<WorkflowActions::Done>> WorkflowActions::act(const User& user, WorkflowAction action,
                                                         std::string ns, std::string name,
                                                         std::string options, Deadline deadline) {
  auto found = co_await permitted(user, right_for(action), ns, name, deadline);
  if (!found) co_return std::unexpected(std::move(found.error()));
  auto outcome = workflow_outcome(action, *found);
  if (!outcome) co_return std::unexpected(std::move(outcome.error()));
  if (!outcome->changed) co_return Done{.outcome = std::move(*outcome), .name = name};
  if (action == WorkflowAction::remove) {
    JsonParser parser;
    const auto wanted = parser.parse_object(options.empty() ? "{}" : options, "options");
    const bool force = wanted && (*wanted)["force"].is_true();
    auto removed =
        co_await with_token([&] { return workflows_.remove(ns, name, force, deadline); });
    if (!removed) {
      co_return std::unexpected(
          missing(user, std::move(removed.error()), "Workflow", ns + "/" + name));
    }
    co_return Done{.outcome = {}, .name = name};
  }
  auto done = co_await with_token(
      [&] { return workflows_.put(ns, name, std::string(to_string(action)), options, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  auto changed = name_in(*done);
  if (!changed) co_return std::unexpected(std::move(changed.error()));
  co_await name_user(user, action == WorkflowAction::resubmit ? "creator" : "actor", {ns, *changed},
                     deadline);
  co_return Done{.outcome = {}, .name = std::move(*changed)};
}

Task<Result<std::string>> WorkflowActions::permitted(const User& user, Action action,
                                                     std::string ns, std::string name,
                                                     Deadline deadline) {
  if (auto checked = check_object_name("namespace", ns); !checked) {
    co_return std::unexpected(checked.error());
  }
  if (auto checked = check_object_name("name of the workflow", name); !checked) {
    co_return std::unexpected(checked.error());
  }
  auto found =
      co_await with_token([&] { return workflows_.workflow(ns, name, kFields, deadline); });
  if (!found) {
    co_return std::unexpected(missing(user, std::move(found.error()), "Workflow", ns + "/" + name));
  }
  if (auto read = check_read(*found, "Workflow"); !read) {
    co_return std::unexpected(std::move(read.error()));
  }
  if (auto allowed = rules_.check(user, action, workflow_entity(*found, runtime_)); !allowed) {
    co_return std::unexpected(allowed.error());
  }
  co_return std::move(*found);
}

Task<Result<OpenedLogs>> WorkflowActions::logs(const User& user, std::string ns, std::string name,
                                               argo::WorkflowLogOptions options,
                                               Deadline deadline) {
  const auto found = co_await permitted(user, Action::access_logs, ns, name, deadline);
  if (!found) co_return std::unexpected(found.error());
  auto opened = co_await workflows_.logs(ns, name, std::move(options), deadline);
  if (!opened) co_return std::unexpected(shown(std::move(opened.error())));
  co_return OpenedLogs{.exchange = std::move(*opened),
                       .is_allowed = still_allowed(Action::access_logs, *found)};
}

StillAllowed WorkflowActions::still_allowed(Action action, std::string_view workflow) const {
  return [this, action, entity = workflow_entity(workflow, runtime_)](const User& user) {
    return rules_.check(user, action, entity);
  };
}

Task<Result<std::string>> WorkflowActions::submit(const User& user, std::string ns,
                                                  std::string workflow_template,
                                                  std::string options, Deadline deadline) {
  if (auto checked = check_object_name("namespace", ns); !checked) {
    co_return std::unexpected(checked.error());
  }
  if (auto checked = check_object_name("name of the workflow template", workflow_template);
      !checked) {
    co_return std::unexpected(checked.error());
  }
  auto found = co_await with_token(
      [&] { return workflows_.workflow_template(ns, workflow_template, deadline); });
  if (!found) {
    co_return std::unexpected(
        missing(user, std::move(found.error()), "WorkflowTemplate", ns + "/" + workflow_template));
  }
  if (auto read = check_read(*found, "WorkflowTemplate"); !read) {
    co_return std::unexpected(std::move(read.error()));
  }
  if (auto allowed = rules_.check(user, Action::create, workflow_template_entity(*found, runtime_));
      !allowed) {
    co_return std::unexpected(allowed.error());
  }
  auto done = co_await with_token(
      [&] { return workflows_.submit(ns, workflow_template, options, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  auto made = name_in(*done);
  if (!made) co_return made;
  co_await name_user(user, "creator", {ns, *made}, deadline);
  co_return made;
}

// The action has succeeded; a failure to label only goes to the log.
Task<> WorkflowActions::name_user(const User& user, std::string_view role, k8s::ObjectKey key,
                                  Deadline deadline) {
  if (cluster_ == nullptr || key.name.empty()) co_return;
  static const Log log("actions");
  const auto patched = co_await cluster_->patch(
      k8s::resources::kWorkflows, key, k8s::PatchType::merge, who_labels(user, role), deadline);
  if (!patched) {
    log.warning("a Workflow does not name its user", {{"namespace", key.ns},
                                                      {"name", key.name},
                                                      {"role", role},
                                                      {"error", patched.error().message}});
  }
}

std::string label_value(std::string_view text) {
  const auto is_end = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  constexpr std::size_t kMaxLength = 63;
  std::string value;
  for (const char c : text) {
    // One '-' replaces a whole UTF-8 character.
    const bool is_continuation = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (is_continuation) continue;
    value += is_end(c) || c == '-' || c == '_' || c == '.' ? c : '-';
  }
  if (value.size() > kMaxLength) value.erase(0, value.size() - kMaxLength);
  value.erase(value.begin(), std::ranges::find_if(value, is_end));
  while (!value.empty() && !is_end(value.back())) value.pop_back();
  return value;
}

std::string who_labels(const User& user, std::string_view role) {
  std::string email = user.email;
  if (const auto at = email.find('@'); at != std::string::npos) email.replace(at, 1, ".at.");
  std::string labels;
  ObjectWriter writer(labels);
  for (const auto& [suffix, text] :
       {std::pair<std::string_view, std::string_view>("", user.id.empty() ? user.name : user.id),
        {"-email", email},
        {"-preferred-username", user.name}}) {
    const std::string key = "workflows.argoproj.io/" + std::string(role) + std::string(suffix);
    const std::string value = label_value(text);
    if (value.empty()) {
      writer.raw(key, "null");
    } else {
      writer.text(key, value);
    }
  }
  writer.end();
  return R"({"metadata":{"labels":)" + labels + "}}";
}

Result<Outcome> workflow_outcome(WorkflowAction action, std::string_view workflow) {
  JsonParser parser;
  const auto root = parser.parse_object(workflow, "Workflow");
  if (!root) return std::unexpected(root.error());
  const std::string_view phase = (*root)["status"]["phase"].text();
  const bool has_ended = phase == "Succeeded" || phase == "Failed" || phase == "Error";
  const std::string_view shutdown = (*root)["spec"]["shutdown"].text();
  const auto nothing = [](std::string note) { return Outcome{.changed = false, .note = note}; };
  const auto impossible = [](std::string message) {
    return std::unexpected(Error{.code = ErrorCode::conflict,
                                 .message = std::move(message),
                                 .subcode = action_errors::kNotPossible});
  };
  using enum WorkflowAction;
  switch (action) {
    case terminate:
      if (has_ended) return nothing("the workflow has ended already");
      if (shutdown == "Terminate") return nothing("the workflow is being terminated");
      return Outcome();
    case stop:
      if (has_ended) return nothing("the workflow has ended already");
      if (!shutdown.empty()) return nothing("the workflow is being ended");
      return Outcome();
    case suspend:
      if (has_ended) return impossible("the workflow has ended already");
      if ((*root)["spec"]["suspend"].is_true()) return nothing("the workflow is suspended already");
      return Outcome();
    case resume:
    case set:
      if (has_ended) return impossible("the workflow has ended already");
      return Outcome();
    case retry:
      if (!has_ended)
        return impossible("the workflow has not ended; only one that failed is retried");
      return Outcome();
    case resubmit:
    case remove:
      return Outcome();
  }
  return Outcome();
}

}  // namespace gitops::app_proxy
