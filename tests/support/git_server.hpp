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

/// Variables that hide the configuration of the machine and of the user from a git command.
Environment isolated_git_environment(const std::filesystem::path& home);

/// A real Git server: lighttpd and git-http-backend, smart HTTP with basic authentication for
/// reading and writing, repositories in a temporary folder. Runs for the lifetime of the object.
/// Throws when it cannot start and when a git command fails.
class GitServer {
 public:
  /// With a certificate (SAN localhost) the same repositories are served by HTTPS as well.
  explicit GitServer(const Certificate* tls = nullptr);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  /// Creates an empty repository with the default branch main and returns its URL.
  std::string create_repository(const std::string& name);

  std::string url(const std::string& name) const;      // http://127.0.0.1:PORT/git/NAME.git
  std::string tls_url(const std::string& name) const;  // https://localhost:PORT/git/NAME.git
  /// Another user who may read and write everything.
  void add_user(const std::string& name, const std::string& password);

  const std::string& username() const { return username_; }
  const std::string& password() const { return password_; }

  /// Commits on top of main and pushes over HTTP, as any client would. Returns the commit's id.
  /// Without changes the commit is empty.
  std::string commit(const std::string& repository, const FileChanges& changes,
                     const std::string& message, const CommitAuthor& author = {});

  /// The commit that main points to; empty before the first commit.
  std::string head(const std::string& repository) const;

  /// A file's content on main; nullopt when the file does not exist.
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
