#pragma once

#include <string>

#include "app-proxy/logs/log_streams.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of Subscription.
namespace gitops::app_proxy {

Task<Result<graphql::Stream>> application_logs(LogStreams& logs, graphql::Call& call);
Task<Result<graphql::Stream>> workflow_logs(LogStreams& logs, graphql::Call& call);
Task<Result<graphql::Stream>> component_logs(LogStreams& logs, graphql::Call& call);
Task<Result<graphql::Stream>> pod_events(LogStreams& logs, graphql::Call& call);

void add_log_types(graphql::Resolvers& to);

// Pure functions.

// Fields that return one line.
enum class LogShape { application, workflow, component, pod_events };
// Returns the JSON of `data`. `component` is the requested one.
std::string render_line(LogShape shape, const LogLine& line, std::string_view component = {});

}  // namespace gitops::app_proxy
