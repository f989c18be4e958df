#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/store/connection.hpp"
#include "daemons/control_plane_process.hpp"
#include "daemons/control_plane_users.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

// The real control plane with the accounts of control_plane_users.hpp and the runtime "prod" in the namespace
// "runtime". It serves by TLS, and has a master key. Main thread; its calls block.
class ControlPlaneBed {
 public:
  // A further member of acme. `key` has the form that the program issues.
  struct Member {
    std::string id;
    std::string key;
  };
  struct Team {
    std::string name;  // also its id
    std::vector<std::string> users = {};
  };
  struct Options {
    store::Engine engine = store::Engine::sqlite;
    std::vector<std::string> flags = {};
    std::vector<Member> members = {};
    // The only teams of acme: nobody is in a built-in one.
    std::vector<Team> teams = {};
  };

  // Returns when the program serves; otherwise throws, with its log.
  explicit ControlPlaneBed(Options options);
  ControlPlaneBed() : ControlPlaneBed(Options()) {}

  ControlPlaneProcess& program() { return program_; }
  [[nodiscard]] const ControlPlaneProcess& program() const { return program_; }
  [[nodiscard]] std::string url() const { return program_.url(); }
  [[nodiscard]] const std::filesystem::path& ca_file() const { return authority_.ca_file(); }
  // Issues further certificates.
  CertificateAuthority& authority() { return authority_; }

  // Sends a document and returns the value of its first field. Throws when the response has errors.
  nlohmann::json ask(const std::string& query,
                     const nlohmann::json& variables = nlohmann::json::object(),
                     const std::string& token = kAnnKey) const;
  // The name of the runtime that a token belongs to; empty when it is not accepted.
  [[nodiscard]] std::string runtime_of(const std::string& token) const;
  // The Git provider, the root of its API and the shared configuration repository of acme.
  void set_git(const std::string& provider, const std::string& api_url,
               const std::string& repository) const;
  // Adds rules: {entityType, teams, actions, attributes}. Other members are ignored.
  void add_rules(const nlohmann::json& rules) const;
  // Removes all rules of acme.
  void remove_rules() const;

 private:
  std::vector<std::string> with_master_key(std::vector<std::string> flags) const;
  void seed(const Options& options);

  CertificateAuthority authority_;
  TempDir folder_;
  ControlPlaneProcess program_;
};

}  // namespace gitops::test
