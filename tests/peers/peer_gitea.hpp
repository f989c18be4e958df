#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "peers/peer_programs.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

/// A real Gitea with SQLite: REST and smart HTTP over HTTPS with a certificate of a private CA, for
/// localhost. It delivers webhooks to any host. Tokens of logins by OAuth end after 290 s. The constructor returns when it answers, and has made
/// an administrator.
class PeerGitea {
 public:
  PeerGitea();

  /// One line that names what is missing; nullopt when nothing is.
  static std::optional<std::string> missing();

  struct User {
    std::string name;
    std::string email;
    std::string token;     // for REST, and as the password of Git
    std::string password;  // for a login in a browser
  };
  const User& admin() const { return admin_; }
  /// Makes a user with a token for everything.
  User create_user(const std::string& name, bool is_admin = false);
  /// A further token of a user, with these scopes only: "read:repository,read:user".
  std::string create_token(const User& user, const std::string& scopes);
  /// Makes a repository of that user with one commit and returns its clone URL.
  std::string create_repository(const User& owner, const std::string& name);

  std::string url() const { return "https://localhost:" + std::to_string(port_); }
  const std::filesystem::path& ca_file() const { return authority_.ca_file(); }
  /// A call of /api/v1 with the user's token; `path` begins with a slash.
  HttpReply api(const User& user, const std::string& method, const std::string& path,
                const std::string& json = {}) const;
  /// Runs git inside of a served repository.
  CommandResult git(const User& owner, const std::string& name,
                    const std::vector<std::string>& args) const;
  PeerPrograms& programs() { return programs_; }

 private:
  std::string settings() const;
  /// Runs `gitea admin user ARGS...`; returns what it prints.
  std::string admin_command(std::vector<std::string> args) const;

  CertificateAuthority authority_;
  Certificate certificate_;
  int port_ = free_port();
  PeerPrograms programs_{"gitops-gitea"};
  User admin_;
};

}  // namespace gitops::test
