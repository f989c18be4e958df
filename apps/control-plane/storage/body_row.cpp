#include "control-plane/storage/body_row.hpp"

#include <array>
#include <string>
#include <utility>

#include "control-plane/storage/body_codec.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::array<store::Statement, 1> kBodyStatements{
    {{.name = "storage.read_body",
      .sql = "SELECT b.codec, b.size, b.packed FROM body b JOIN object o ON o.id = b.object "
             "WHERE o.account = $1 AND o.id = $2"}}};

}  // namespace

Result<std::optional<ObjectBody>> body_of_row(const store::Rows& rows, std::size_t row,
                                              std::size_t first) {
  if (rows.is_null(row, first)) return std::optional<ObjectBody>();
  auto body =
      unpack_body(static_cast<BodyCodec>(rows.number(row, first)), rows.text(row, first + 2),
                  static_cast<std::size_t>(rows.number(row, first + 1)));
  if (!body) return std::unexpected(std::move(body.error()));
  return std::optional<ObjectBody>(std::move(*body));
}

Result<ObjectBody> read_body(store::Connection& connection, std::int64_t account,
                             std::int64_t object) {
  const auto rows = connection.run(kBodyStatements[0], {account, object});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) {
    return fail(ErrorCode::not_found, "object " + std::to_string(object) + " has no body");
  }
  auto body = body_of_row(*rows, 0, 0);
  if (!body) return std::unexpected(std::move(body.error()));
  return std::move(**body);
}

std::span<const store::Statement> body_statements() {
  return kBodyStatements;
}

}  // namespace gitops::control_plane_server
