#pragma once

#include "app-proxy/actions/workflows.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema about Workflows.
namespace gitops::app_proxy {

// {"metadata":{"name","namespace"},"changed","message"}
Task<Result<graphql::Json>> change_workflow(WorkflowActions& workflows, WorkflowAction action,
                                            graphql::Call& call);
// {"newWorkflowName"}
Task<Result<graphql::Json>> resubmit_workflow(WorkflowActions& workflows, graphql::Call& call);
Task<Result<graphql::Json>> submit_workflow(WorkflowActions& workflows, graphql::Call& call);

void add_workflow_types(graphql::Resolvers& to);

}  // namespace gitops::app_proxy
