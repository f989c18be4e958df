#include "control-plane/accounts/first_start.hpp"

#include <array>
#include <cerrno>
#include <iostream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/core/crypto.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/passwords.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// The update changes nothing. It locks the row, so that one of several processes goes on and the others wait.
constexpr Statement kTakeInstance{
    .name = "accounts.take_instance",
    .sql =
        "INSERT INTO instance (one, id, created_at) VALUES (1, $1, $2) "
        "ON CONFLICT (one) DO UPDATE SET restores = instance.restores RETURNING id"};
constexpr Statement kInstance{.name = "accounts.instance",
                              .sql = "SELECT id FROM instance WHERE one = 1"};

constexpr std::array kFirstStartStatements{kTakeInstance, kInstance};

std::unexpected<Error> file_error(const std::string& path, int error) {
  return fail(error == EEXIST ? ErrorCode::conflict : ErrorCode::unavailable,
              path + ": " + std::generic_category().message(error));
}

Result<void> write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return fail(ErrorCode::unavailable,
                  std::generic_category().message(written < 0 ? errno : ENOSPC));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

FirstStartPlan plan_first_start(bool has_users, bool is_password_given) {
  return {.creates_administrator = !has_users,
          .generates_password = !has_users && !is_password_given};
}

Result<FirstStart> first_start(Connection& connection, const FirstStartSettings& settings,
                               const PublishPassword& publish, Micros now) {
  const auto id = new_id();
  const auto instance = connection.run(kTakeInstance, {id, now});
  if (!instance) return std::unexpected(instance.error());
  const auto any_user = has_users(connection);
  if (!any_user) return std::unexpected(any_user.error());
  FirstStart outcome{.instance = instance->string(0, 0),
                     .created_administrator = false,
                     .administrator = settings.administrator};
  const auto plan = plan_first_start(*any_user, !settings.password.empty());
  if (!plan.creates_administrator) return outcome;
  const Secret password = plan.generates_password ? generated_password() : settings.password;
  if (auto mistake = password_mistake(password); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, "the administrator's password: " + mistake);
  }
  // An account may exist without users, after `control-plane account add`.
  auto account = account_of_name(connection, settings.account);
  if (!account && account.error().code == ErrorCode::not_found) {
    account = create_account(connection, settings.account, now);
  }
  if (!account) return std::unexpected(std::move(account.error()));
  const auto created = create_user(connection, account->number,
                                   {.name = settings.administrator,
                                    .email = settings.email,
                                    .password = hash_password(password, random_bytes(kSaltBytes)),
                                    .is_system_admin = true,
                                    .is_admin = true},
                                   now);
  if (!created) return std::unexpected(created.error());
  if (plan.generates_password) {
    if (auto published = publish(settings.administrator, password); !published) {
      return fail("the administrator's password cannot be handed over",
                  std::move(published.error()));
    }
  }
  outcome.created_administrator = true;
  return outcome;
}

PublishPassword publish_to_file(const std::string& path) {
  return [path](const std::string& name, const Secret& password) -> Result<void> {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return file_error(path, errno);
    auto written = write_all(file, std::string(password.reveal()) + "\n");
    if (written && ::fsync(file) != 0) written = file_error(path, errno);
    ::close(file);
    if (!written) {
      ::unlink(path.c_str());
      return fail(path, std::move(written.error()));
    }
    Log("accounts")
        .info("the first administrator's password was written", {{"user", name}, {"file", path}});
    return {};
  };
}

PublishPassword publish_to_standard_output() {
  return [](const std::string& name, const Secret& password) -> Result<void> {
    std::cout << "First administrator: " << name << "\nPassword (shown once): " << password.reveal()
              << std::endl;
    if (!std::cout) return fail(ErrorCode::unavailable, "standard output cannot be written");
    Log("accounts")
        .info("the first administrator's password was written to standard output",
              {{"user", name}});
    return {};
  };
}

Result<std::string> instance_id(Connection& connection) {
  const auto rows = connection.run(kInstance);
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return fail(ErrorCode::not_found, "the database has had no first start yet");
  return rows->string(0, 0);
}

std::span<const Statement> first_start_statements() {
  return kFirstStartStatements;
}

}  // namespace gitops::control_plane_server
