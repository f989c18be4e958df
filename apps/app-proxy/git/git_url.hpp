#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/url.hpp"

// Names of repositories, branches and files as users write them. Pure.
namespace gitops::app_proxy {

// Where a repository is fetched from and pushed to.
struct RepositoryUrl {
  http::Url http;    // scheme http or https, a path, nothing else
  std::string name;  // the path without slashes around it and without ".git": "owner/name"

  // "https://host/owner/name.git", as given. Holds no credential.
  [[nodiscard]] std::string to_string() const { return http.to_string(); }
  // The same for each spelling of one repository: with or without ".git" and a default port.
  [[nodiscard]] std::string key() const;
};

// Reads a clone URL. Refused, each with its own message: schemes other than https (http only with
// `Scheme::http_too`), "user@host:path", local paths, credentials in the URL, a query, text that a
// command line would take for an option, "." and "..", also when percent-encoded, and control
// characters. Messages do not repeat the URL, since it may hold a credential.
enum class Scheme { https_only, http_too };
Result<RepositoryUrl> parse_repository_url(std::string_view text,
                                           Scheme scheme = Scheme::https_only);

// A folder of a branch: "https://host/owner/name.git[/path][?ref=branch]". The forms of the public
// command line are read, too: without ".git" after two segments, as
// https://github.com/owner/name/path, with Azure's "_git"
// ("https://dev.azure.com/organisation/project/_git/name/path"), and at a tag or a commit (?tag=,
// ?sha=).
struct RepositorySpecifier {
  enum class Kind : std::uint8_t { branch, tag, commit };
  RepositoryUrl repository;
  std::string path = {};     // without slashes around it; empty: the root
  std::string ref = {};      // empty: the default branch
  Kind kind = Kind::branch;  // of `ref`
};
// The repository's part ends with the first path segment that ends in ".git", else with the one
// behind "_git", else with the second one, to which ".git" is added.
Result<RepositorySpecifier> parse_specifier(std::string_view text,
                                            Scheme scheme = Scheme::https_only);

// The short name of a branch. Accepts "refs/heads/main" for "main". Follows git-check-ref-format(1),
// and refuses a leading '-', "HEAD", a full name outside of refs/heads, and more than 244 bytes.
Result<std::string> parse_branch(std::string_view text);

// Whether `text` is a full object id: 40 hex digits.
bool is_object_id(std::string_view text);

}  // namespace gitops::app_proxy
