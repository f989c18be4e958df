#pragma once

#include <string>
#include <vector>

#include "common/http/router.hpp"
#include "control-plane/accounts/caller_routes.hpp"
#include "control-plane/accounts/identity.hpp"
#include "control-plane/audit/audit_entry.hpp"

namespace gitops::control_plane_server {

// The field of every answer with the id of its request, by which people report it.
inline constexpr const char* kRequestIdField = "X-Request-Id";

// Returns an entry with the caller's account and name; a null caller is nobody.
AuditEntry audit_entry(const Caller* caller, std::string peer, std::string action);

// Stores the entry of a request that was answered with this response: of every change, and of every refusal. Does
// nothing for a request that only read, and without an audit log.
Task<> audit_response(const UserRouteContext& context, const http::Exchange& exchange,
                      const http::Response& response, AuditEntry entry);

// Adds GET /console/api/v1/audit: the entries of the account, the newest first, for administrators, as JSON or with
// format=csv. Parameters: from, until (RFC 3339), callerId, action, result, before (a number) and limit. An administrator
// of the installation sees with nobody=true the requests that no account is known of.
void add_audit_routes(const UserContext& context, std::vector<http::Route>& routes);

}  // namespace gitops::control_plane_server
