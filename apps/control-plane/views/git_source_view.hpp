#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>

#include "common/store/connection.hpp"
#include "control-plane/views/entity_view.hpp"

// Git sources: Applications with the label codefresh.io/entity: git-source.
namespace gitops::control_plane_server {

// The data of an account about its Git sources besides their Applications.
struct GitSourceFacts {
  // Runtime, namespace and name of a Git source.
  using Name = std::tuple<std::string, std::string, std::string>;
  std::map<Name, std::string, std::less<>> permissions =
      {};                                             // JSON, from updateGitSourcePermissions
  std::map<Name, bool, std::less<>> restricted = {};  // Git sources with a RestrictedGitSource
};
Result<GitSourceFacts> read_git_source_facts(store::Connection& connection, std::int64_t account);

// Appends the JSON of type GitSource. Pure.
void append_git_source(std::string& out, const ObjectState& state, const ParsedBody& body,
                       const ViewContext& context, const GitSourceFacts& facts);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> git_source_statements();

}  // namespace gitops::control_plane_server
