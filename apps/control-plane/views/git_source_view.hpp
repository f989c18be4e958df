#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>

#include "common/store/connection.hpp"
#include "control-plane/views/entity_view.hpp"

// Git sources: Applications with the label codefresh.io/entity: git-source.
namespace gitops::control_plane_server {

// What the account knows of its Git sources besides their Applications.
struct GitSourceFacts {
  // Runtime, namespace and name of a Git source.
  using Name = std::tuple<std::string, std::string, std::string>;
  std::map<Name, std::string, std::less<>> permissions =
      {};                                             // JSON, as updateGitSourcePermissions told it
  std::map<Name, bool, std::less<>> restricted = {};  // Git sources with a RestrictedGitSource
};
Result<GitSourceFacts> read_git_source_facts(store::Connection& connection, std::int64_t account);

// Appends the JSON of type GitSource. Pure.
void append_git_source(std::string& out, const ObjectState& state, const ParsedBody& body,
                       const ViewContext& context, const GitSourceFacts& facts);

// For the test that prepares every statement.
std::span<const store::Statement> git_source_statements();

}  // namespace gitops::control_plane_server
