#pragma once

#include <string>
#include <string_view>

#include "app-proxy/actions/applications.hpp"
#include "common/graphql/resolvers.hpp"

// Fields of the schema for Applications and their objects.
namespace gitops::app_proxy {

Task<Result<graphql::Json>> application_proxy_query(ApplicationActions& applications,
                                                    graphql::Call& call);
Task<Result<graphql::Json>> sync_application(ApplicationActions& applications, graphql::Call& call);
Task<Result<graphql::Json>> refresh_application(ApplicationActions& applications,
                                                graphql::Call& call);
Task<Result<graphql::Json>> rollback_application(ApplicationActions& applications,
                                                 graphql::Call& call);
Task<Result<graphql::Json>> terminate_application_operation(ApplicationActions& applications,
                                                            graphql::Call& call);
Task<Result<void>> delete_argo_application(ApplicationActions& applications, graphql::Call& call);
Task<Result<graphql::Json>> application_resource(ApplicationActions& applications,
                                                 graphql::Call& call);
Task<Result<graphql::Json>> patch_application_resource(ApplicationActions& applications,
                                                       graphql::Call& call);
Task<Result<void>> delete_application_resource(ApplicationActions& applications,
                                               graphql::Call& call);
Task<Result<graphql::Json>> resource_actions(ApplicationActions& applications, graphql::Call& call);
Task<Result<graphql::Json>> run_resource_action(ApplicationActions& applications,
                                                graphql::Call& call);

void add_application_types(graphql::Resolvers& to);

// Pure functions.

// Converts a client's SyncOptions to the JSON of argocd-server's request.
std::string sync_options(graphql::InputView options);

// Converts an Application of argocd-server to ApplicationItemInfo: Argo CD's terms for health and
// sync in capitals, and the additional fields of the schema.
std::string render_application(std::string_view application, std::string_view runtime);

// Converts "OutOfSync" to the form of the schema's enums: "OUT_OF_SYNC". A word in capitals is not
// changed.
std::string enum_word(std::string_view word);

}  // namespace gitops::app_proxy
