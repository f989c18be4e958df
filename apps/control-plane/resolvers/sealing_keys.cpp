#include "control-plane/resolvers/sealing_keys.hpp"

#include <optional>
#include <string>
#include <utility>

#include "common/core/encoding.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/tokens.hpp"
#include "control-plane/runtimes/secrets.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

std::unexpected<Error> no_master_key() {
  return fail(ErrorCode::unsupported,
              "this control plane keeps no sealing keys: it has no master key");
}

std::unexpected<Error> no_sealing_key(const std::string& id) {
  return fail(ErrorCode::not_found, "there is no sealing key " + id);
}

Task<Result<std::string>> save_sealing_key(Dependencies& dependencies, Call& call) {
  if (dependencies.secrets == nullptr) co_return no_master_key();
  const auto account = caller_of(call).account->number;
  const Secret key{std::string(call["privateKey"].text())};
  const auto decoded = base64_decode(key.reveal());
  if (!decoded || decoded->empty() || key.reveal().size() > kMaxSealingKey) {
    co_return fail(ErrorCode::invalid_argument,
                   "privateKey is not a PEM text in base64 of at most 64 KiB");
  }
  const auto id = new_id();
  const auto name = sealing_key_name(id);
  const auto put = co_await dependencies.database.write(
      call.deadline(), [account, name, sealed = dependencies.secrets->seal(account, name, key),
                        now = micros_at(wall_now())](store::Connection& db) {
        return put_secret(db, account, name, sealed, now);
      });
  if (!put) co_return std::unexpected(put.error());
  co_return id;
}

Task<Result<std::string>> get_sealing_key(Dependencies& dependencies, Call& call) {
  if (dependencies.secrets == nullptr) co_return no_master_key();
  const auto account = caller_of(call).account->number;
  const std::string id(call["id"].text());
  if (!is_id(id)) co_return no_sealing_key(id);
  const auto name = sealing_key_name(id);
  const auto sealed = co_await dependencies.database.read(
      call.deadline(),
      [account, name](store::Connection& db) { return find_secret(db, account, name); });
  if (!sealed) co_return std::unexpected(sealed.error());
  if (!*sealed) co_return no_sealing_key(id);
  const auto key = dependencies.secrets->open(account, name, **sealed);
  if (!key) {
    co_return fail(ErrorCode::internal, "sealing key " + id + ": " + key.error().message);
  }
  co_return std::string(key->reveal());
}

}  // namespace

std::vector<FieldRow> sealing_key_rows(Dependencies& dependencies) {
  using enum Permission;
  return {
      read("getSealingKey", runtime,
           [&dependencies](Call& call) { return get_sealing_key(dependencies, call); }),
      change("saveSealingKey", runtime, {},
             [&dependencies](Call& call) { return save_sealing_key(dependencies, call); }),
  };
}

}  // namespace gitops::control_plane_server
