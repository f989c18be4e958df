#pragma once

#include <string>
#include <string_view>

#include "app-proxy/actions/applications.hpp"
#include "common/graphql/resolvers.hpp"

// The fields of the schema about Applications and their objects.
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

// Below: pure.

// The JSON of SyncOptions, as clients send it, as argocd-server's request has it.
std::string sync_options(graphql::InputView options);

// An Application as argocd-server shows it, in the form of ApplicationItemInfo: Argo CD's words for health and
// sync in capitals, and what the schema adds.
std::string render_application(std::string_view application, std::string_view runtime);

// "OutOfSync" as the schema's enums write it: "OUT_OF_SYNC". A word in capitals stays as it is.
std::string enum_word(std::string_view word);

}  // namespace gitops::app_proxy
