#pragma once

#include "app-proxy/actions/workflows.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema for Workflows.
namespace gitops::app_proxy {

// Returns {"metadata":{"name","namespace"},"changed","message"}.
Task<Result<graphql::Json>> change_workflow(WorkflowActions& workflows, WorkflowAction action,
                                            graphql::Call& call);
// Returns {"newWorkflowName"}.
Task<Result<graphql::Json>> resubmit_workflow(WorkflowActions& workflows, graphql::Call& call);
Task<Result<graphql::Json>> submit_workflow(WorkflowActions& workflows, graphql::Call& call);

void add_workflow_types(graphql::Resolvers& to);

}  // namespace gitops::app_proxy
