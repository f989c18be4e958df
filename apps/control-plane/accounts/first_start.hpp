#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// What an empty database gets at the first start: the installation's id, an account and one administrator. Without users
// nobody can log in, so nothing is open before.
namespace gitops::control_plane_server {

struct FirstStartSettings {
  std::string account = "default";
  std::string administrator = "admin";
  std::string email;
  Secret password;  // empty: one is generated
};

struct FirstStartPlan {
  bool creates_administrator = false;
  bool generates_password = false;
};
// What is due: an administrator while there are no users, with a generated password when none is given.
FirstStartPlan plan_first_start(bool has_users, bool is_password_given);

struct FirstStart {
  std::string instance;  // the installation's id, 24 hexadecimal digits
  bool created_administrator = false;
  std::string administrator;  // its name
};

// Hands the generated password over, once: to standard output or into a file. An error undoes the first start.
using PublishPassword =
    std::function<Result<void>(const std::string& name, const Secret& password)>;

// Blocks, within one transaction (Database::write). Several processes may call it at once: one of them creates. Hashes a
// password, so it takes tens of milliseconds when it creates. invalid_argument: a name or a password that is refused.
Result<FirstStart> first_start(store::Connection& connection, const FirstStartSettings& settings,
                               const PublishPassword& publish, Micros now);

// Publishes to a new file of mode 0600. conflict: the file exists.
PublishPassword publish_to_file(const std::string& path);
// Publishes to standard output.
PublishPassword publish_to_standard_output();

// The installation's id; not_found before the first start.
Result<std::string> instance_id(store::Connection& connection);

std::span<const store::Statement> first_start_statements();

}  // namespace gitops::control_plane_server
