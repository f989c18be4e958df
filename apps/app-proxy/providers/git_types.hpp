#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"

// Requests to Git hosts and their results, in one form for all hosts. Plain values.
namespace gitops::app_proxy {

// Priority of a request. Background work leaves a fifth of a token's budget to people.
enum class Urgency { person, background };

// Credential for a host.
struct GitAccess {
  Secret token;
  std::string username = {};  // only for hosts that need one beside the token (Bitbucket Cloud)
  Urgency urgency = Urgency::person;
};

// "owner/name". The owner of a GitLab project may be several groups ("a/b"); the owner of a
// Bitbucket Server repository is the key of its project, or "~user".
struct RepositoryName {
  std::string owner;
  std::string name;

  [[nodiscard]] std::string full() const { return owner + "/" + name; }
  bool operator==(const RepositoryName&) const = default;
};
// Parses a repository's name. Refuses empty segments, "." and "..", a ".git" at the end, and
// characters that no host allows in names. A valid name is safe as a part of a path.
Result<RepositoryName> parse_repository_name(std::string_view text);

// Checks the path of a file. Refuses paths that are not relative and plain: empty segments, "." and
// "..", control characters, over 4,096 bytes.
Result<void> check_file_path(std::string_view path);
// Checks a name of a branch or tag. Refuses names that Git refuses (git-check-ref-format), and
// names that look like an option.
Result<void> check_ref(std::string_view ref);
// Checks a commit id: 7 to 64 hex digits.
Result<void> check_sha(std::string_view sha);
// Checks the id of a webhook: letters, digits, '-', '{' and '}'.
Result<void> check_webhook_id(std::string_view id);

// A result of a host, or the last known one while the host throttles this token.
template <class T>
struct Answer {
  T value = {};
  bool is_last_known = false;
  bool is_truncated = false;  // a list only: the host has more
};

// Profile of a user. Texts here and below come from a host: URLs in them are http or https
// (ssh_url: ssh) and contain no credentials, otherwise they are empty.
struct Profile {
  std::string id;
  std::string login;
  std::string name;  // the login when the user has set none
  std::string mail;  // never empty: a no-reply address when the host reports none
  std::string avatar_url;
};

struct Organisation {
  std::string name;  // as in the names of repositories
};

struct Permissions {
  bool read = false;
  bool write = false;
  bool admin = false;
  bool operator==(const Permissions&) const = default;
};

struct Repository {
  std::string id;
  std::string full_name;
  std::string owner_login;
  std::string owner_avatar_url;
  std::optional<std::string> organisation;  // set when the owner is one and the host reports it
  std::optional<std::string> project;       // Bitbucket only
  std::string default_branch;               // empty: the repository has no commits
  std::string clone_url;
  std::string ssh_url;
  std::string web_url;
  std::string pushed_at;  // RFC 3339; time of the last change where the host reports no push
  std::int64_t open_issues = 0;
  bool is_private = true;                  // false only if the host reports it as public
  std::optional<Permissions> permissions;  // of the token's user, when the host reports them
};

struct RepositoryQuery {
  std::string search = {};  // part of the name; empty: all
  std::size_t page = 1;     // counted from 1
  std::size_t limit = 100;  // of a page; at most 200
};

struct RepositoryPage {
  // Shared with the cached pages of the host (GitHostClient::page()); never null.
  std::vector<std::shared_ptr<const Repository>> repositories;
  std::size_t page = 1;
  bool has_next = false;
};

// A page of repositories as a host returns it.
struct HostPage {
  std::vector<Repository> repositories;
  std::size_t size = 0;  // items in the response, parsed or not
  bool has_next = false;
  std::size_t total = 0;                       // on all pages; 0: the host does not report it
  std::optional<std::size_t> next_start = {};  // Bitbucket Server only
};
// Approximate memory of a page.
std::size_t memory_of(const HostPage& page);
// Returns one repository of a page, and keeps the page alive.
inline std::shared_ptr<const Repository> item_of(const std::shared_ptr<const HostPage>& page,
                                                 std::size_t index) {
  return {page, &page->repositories[index]};
}

struct BranchesAndTags {
  std::vector<std::string> branches;
  std::vector<std::string> tags;
  bool is_truncated = false;  // the host has more of one of them
};

struct FileContent {
  std::string path;
  std::string content;   // bytes
  std::string revision;  // the blob's id; empty when the host reports none
};

struct NewRepository {
  RepositoryName name;
  bool is_private = true;
  bool is_initialised = true;  // creates a first commit
};

struct NewPullRequest {
  std::string title;
  std::string description = {};
  std::string head;  // branch of the same repository
  std::string base;
};

struct PullRequest {
  std::int64_t id = 0;  // the number that people see
  std::string url;
  std::string title;
  std::string description;
  std::string author;
  std::string avatar_url;
  std::string base_branch;
  std::string head_branch;
  std::string created_at;  // RFC 3339
  bool is_open = false;
  bool is_merged = false;
  std::string merge_commit_sha;  // empty until the merge
};

struct CommitStatus {
  enum class State { pending, success, failure };
  State state = State::pending;
  std::string context;  // name of the check
  std::string description = {};
  std::string target_url = {};
};

struct Webhook {
  std::string id;
  std::string url;
  bool is_active = true;
};

struct NewWebhook {
  std::string url;
  Secret secret;  // signs deliveries; empty: unsigned
  bool insecure_skip_verify = false;
};

// Purpose of a token, which decides the permissions that it needs.
enum class TokenUse { user, runtime };

// Result of a check of a valid token. A token that the host refuses is an error instead.
struct TokenCheck {
  Profile profile;
  std::vector<std::string> missing = {};  // permissions that it lacks, in the host's terms
  bool permissions_known = true;          // false: the check was not possible; `missing` is empty
};

}  // namespace gitops::app_proxy
