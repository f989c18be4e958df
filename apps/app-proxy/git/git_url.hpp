#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/http/url.hpp"

// Names of repositories, branches and files as users write them. Pure.
namespace gitops::app_proxy {

// URL from which a repository is fetched and to which it is pushed.
struct RepositoryUrl {
  http::Url http;    // scheme http or https, a path, nothing else
  std::string name;  // the path without outer slashes and without ".git": "owner/name"

  // "https://host/owner/name.git", as given. Contains no credential.
  [[nodiscard]] std::string to_string() const { return http.to_string(); }
  // Key of the repository: equal for its spellings with or without ".git" and a default port.
  [[nodiscard]] std::string key() const;
};

// Parses a clone URL. Refuses, each with its own message: schemes other than https (http only with
// `Scheme::http_too`), "user@host:path", local paths, credentials in the URL, a query, text that a
// command line would take for an option, "." and "..", also when percent-encoded, and control
// characters. Messages do not repeat the URL, since it may contain a credential.
enum class Scheme { https_only, http_too };
Result<RepositoryUrl> parse_repository_url(std::string_view text,
                                           Scheme scheme = Scheme::https_only);

// A folder of a branch: "https://host/owner/name.git[/path][?ref=branch]". The forms of the public
// command line are accepted, too: without ".git" after two segments, as
// https://github.com/owner/name/path, with Azure's "_git"
// ("https://dev.azure.com/organisation/project/_git/name/path"), and at a tag or a commit (?tag=,
// ?sha=).
struct RepositorySpecifier {
  enum class Kind : std::uint8_t { branch, tag, commit };
  RepositoryUrl repository;
  std::string path = {};     // without outer slashes; empty: the root
  std::string ref = {};      // empty: the default branch
  Kind kind = Kind::branch;  // of `ref`
};
// Parses a specifier. The repository ends with the first path segment that ends in ".git", else
// with the segment after "_git", else with the second segment, to which ".git" is added.
Result<RepositorySpecifier> parse_specifier(std::string_view text,
                                            Scheme scheme = Scheme::https_only);

// Returns the short name of a branch: "main" for "refs/heads/main". Follows
// git-check-ref-format(1), and refuses a leading '-', "HEAD", a full name outside of refs/heads,
// and more than 244 bytes.
Result<std::string> parse_branch(std::string_view text);

// Checks whether `text` is a full object id: 40 hex digits.
bool is_object_id(std::string_view text);

}  // namespace gitops::app_proxy
