#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Requests of the public clients of the control plane, and the rules that they impose on its responses beyond those of
// GraphQL: a null, an unknown word of an enum or an empty list of errors makes them fail or end with a stack trace.
namespace gitops::test {

// A GraphQL request as a public client sends it.
struct ClientRequest {
  std::string name;  // "runtimes"
  std::string body;
};

// Returns the requests of client_requests.txt in its order: those of the public Go SDK, which the command line contains,
// then those of the command line alone.
std::vector<ClientRequest> client_requests();
// Returns the body of the request with that name. Throws when there is none.
std::string client_request(std::string_view name);
// Returns the field of Query or Mutation that a request selects.
std::string root_field_of(const ClientRequest& request);

struct ClientCheck {
  std::vector<std::string> findings;  // a line each; empty: the clients accept the response
  std::size_t values = 0;             // that rules were applied to
};

// Checks the body of a response with the status 200 to a document that selects this root field under its own name.
ClientCheck check_response(std::string_view root_field, std::string_view body);

}  // namespace gitops::test
