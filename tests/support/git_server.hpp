#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

/// File path → new content, or nullopt to delete the file.
using FileChanges = std::map<std::string, std::optional<std::string>>;

struct CommitAuthor {
  std::string name = "Test Author";
  std::string email = "author@example.test";
};

/// Variables for a git command that must see neither the machine's nor the user's configuration.
Environment isolated_git_environment(const std::filesystem::path& home);

/// A real Git server: lighttpd and git-http-backend, smart HTTP with basic authentication for
/// reading and writing, repositories in a temporary folder. Runs from construction to destruction
/// of the object; a failure to start or of a git command throws.
class GitServer {
 public:
  /// With a certificate (SAN localhost) the same repositories are served by HTTPS as well.
  explicit GitServer(const Certificate* tls = nullptr);

  /// What a machine lacks for this server, in one line; nullopt: nothing.
  static std::optional<std::string> missing();

  /// Makes an empty repository, default branch main, and returns its URL.
  std::string create_repository(const std::string& name);

  std::string url(const std::string& name) const;      // http://127.0.0.1:PORT/git/NAME.git
  std::string tls_url(const std::string& name) const;  // https://localhost:PORT/git/NAME.git
  const std::string& username() const { return username_; }
  const std::string& password() const { return password_; }

  /// Commits on top of what main holds now and pushes by HTTP as any client would; returns the
  /// commit's id. Without changes the commit is empty.
  std::string commit(const std::string& repository, const FileChanges& changes,
                     const std::string& message, const CommitAuthor& author = {});

  /// The commit main points to; empty as long as there is none.
  std::string head(const std::string& repository) const;

  /// A file's content on main; nullopt when it is not there.
  std::optional<std::string> file_at_head(const std::string& repository,
                                          const std::string& path) const;

  /// Runs `git ARGS...` inside the served repository.
  CommandResult git(const std::string& repository, const std::vector<std::string>& args) const;

  const std::filesystem::path& folder() const { return folder_.path(); }
  Process& process() { return *process_; }

 private:
  std::filesystem::path bare(const std::string& repository) const;

  TempDir folder_;
  std::string username_ = "git-user";
  std::string password_;
  int port_;
  int tls_port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace gitops::test
