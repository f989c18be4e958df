#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// The first start on an empty database: creates the installation's id, an account and one administrator. Until then no
// user exists, so logins fail.
namespace gitops::control_plane_server {

struct FirstStartSettings {
  std::string account = "default";
  std::string administrator = "admin";
  std::string email;
  Secret password;  // empty: a password is generated
};

struct FirstStartPlan {
  bool creates_administrator = false;
  bool generates_password = false;
};
// Returns the steps that are due: an administrator while there are no users, with a generated password when none is
// given.
FirstStartPlan plan_first_start(bool has_users, bool is_password_given);

struct FirstStart {
  std::string instance;  // the installation's id, 24 hexadecimal digits
  bool created_administrator = false;
  std::string administrator;  // name of the administrator
};

// Publishes the generated password once: to standard output or into a file. An error rolls the first start back.
using PublishPassword =
    std::function<Result<void>(const std::string& name, const Secret& password)>;

// Runs the first start. Blocks, within one transaction (Database::write). Several processes may call it at once; one of
// them creates. Creating hashes a password, which takes tens of milliseconds. invalid_argument: the name or the
// password is refused.
Result<FirstStart> first_start(store::Connection& connection, const FirstStartSettings& settings,
                               const PublishPassword& publish, Micros now);

// Returns a function that publishes to a new file of mode 0600. conflict: the file exists.
PublishPassword publish_to_file(const std::string& path);
// Returns a function that publishes to standard output.
PublishPassword publish_to_standard_output();

// Returns the installation's id; not_found before the first start.
Result<std::string> instance_id(store::Connection& connection);

std::span<const store::Statement> first_start_statements();

}  // namespace gitops::control_plane_server
