#include "control-plane/views/image_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

constexpr std::string_view kImageColumns =
    "SELECT name, id, data, registry, updated_at FROM image WHERE account = $1";
constexpr std::string_view kImageByName = " AND name = $2";
constexpr std::string_view kImageById = " AND id = $2 ORDER BY name LIMIT 1";
constexpr std::string_view kForUpdate = " FOR UPDATE";

constexpr Statement kFindImage{.name = "images.find",
                               .sql = store::joined<kImageColumns, kImageByName>};
// Makes the row of a new image, so that there is one to lock.
constexpr Statement kAddImage{
    .name = "images.add",
    .sql =
        "INSERT INTO image (account, name, id, data, registry, updated_at) "
        "VALUES ($1, $2, '', '{}', '{}', $3) ON CONFLICT DO NOTHING"};
// Locks an image, since another replica may change it at the same time. SQLite has only one writer.
constexpr Statement kLockImage{.name = "images.lock",
                               .sql = store::joined<kImageColumns, kImageByName>,
                               .postgres = store::joined<kImageColumns, kImageByName, kForUpdate>};
constexpr Statement kLockImageById{
    .name = "images.lock_id",
    .sql = store::joined<kImageColumns, kImageById>,
    .postgres = store::joined<kImageColumns, kImageById, kForUpdate>};
constexpr Statement kPutImage{
    .name = "images.put",
    .sql =
        "INSERT INTO image (account, name, id, data, registry, updated_at) "
        "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account, name) DO UPDATE SET "
        "id = excluded.id, data = excluded.data, registry = excluded.registry, "
        "updated_at = excluded.updated_at"};
// Waits for another replica that makes the same row, and leaves that one.
constexpr Statement kAddAnnotation{
    .name = "images.add_annotation",
    .sql =
        "INSERT INTO annotation (account, entity_type, entity, type, key, value, updated_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"};
constexpr std::string_view kAnnotationValue =
    "SELECT value FROM annotation WHERE account = $1 AND entity_type = $2 AND entity = $3 AND "
    "type = $4 AND key = $5";
constexpr Statement kLockAnnotation{.name = "images.lock_annotation",
                                    .sql = kAnnotationValue,
                                    .postgres = store::joined<kAnnotationValue, kForUpdate>};
constexpr Statement kPutAnnotation{
    .name = "images.put_annotation",
    .sql =
        "INSERT INTO annotation (account, entity_type, entity, type, key, value, updated_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account, entity_type, entity, type, key) "
        "DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"};
constexpr Statement kAnnotations{
    .name = "images.annotations",
    .sql =
        "SELECT entity_type, entity, type, key, value FROM annotation WHERE account = $1 AND "
        "entity_type = $2 AND entity = $3 ORDER BY type, key LIMIT 200"};

constexpr std::array kImageStatements{kFindImage,     kAddImage,    kLockImage,
                                      kLockImageById, kPutImage,    kLockAnnotation,
                                      kPutAnnotation, kAnnotations, kAddAnnotation};

std::optional<ImageRow> image_row(const store::Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return ImageRow{.name = rows.string(0, 0),
                  .id = rows.string(0, 1),
                  .data = rows.string(0, 2),
                  .registry = rows.string(0, 3),
                  .updated_at = rows.number(0, 4)};
}

Result<std::optional<ImageRow>> image_by(Connection& connection, const Statement& statement,
                                         std::int64_t account, std::string_view what) {
  const auto rows = connection.run(statement, {account, what});
  if (!rows) return std::unexpected(rows.error());
  return image_row(*rows);
}

// Checks a part of a key.
Result<void> check_key(std::string_view field, std::string_view text) {
  const bool is_valid = !text.empty() && text.size() <= kMaxImageName &&
                        std::ranges::none_of(text, [](unsigned char c) { return c < 0x20; });
  if (is_valid) return {};
  return fail(ErrorCode::invalid_argument,
              std::string(field) + " must have 1 to 1024 bytes without control characters");
}

Result<void> put_image(Connection& connection, std::int64_t account, const ImageRow& row) {
  if (row.data.size() + row.registry.size() > kMaxImageData) {
    return fail(ErrorCode::too_large, "the data of an image exceeds 1 MiB");
  }
  return connection.execute(kPutImage,
                            {account, row.name, row.id, row.data, row.registry, row.updated_at});
}

// Returns the row of this name, or a new one, for this transaction alone.
Result<ImageRow> locked_image(Connection& connection, std::int64_t account, std::string_view name,
                              Micros now) {
  if (auto checked = check_key("imageName", name); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (auto added = connection.execute(kAddImage, {account, name, now}); !added) {
    return std::unexpected(std::move(added.error()));
  }
  auto known = image_by(connection, kLockImage, account, name);
  if (!known) return std::unexpected(std::move(known.error()));
  ImageRow row = *known ? std::move(**known) : ImageRow{.name = std::string(name), .id = {}};
  row.updated_at = now;
  return row;
}

// Returns the value of an annotation, by its kind.
std::string annotation_value(const nlohmann::json& input) {
  for (const auto* member : {"issueValue", "pullRequestValue", "genericValue"}) {
    if (const auto& value = value_at(input, {member}); !value.is_null()) return to_text(value);
  }
  return "{}";
}

}  // namespace

std::string merged_object(std::string_view stored, std::string_view newer) {
  auto merged = parse_json_object(stored);
  const auto added = parse_json_object(newer);
  if (!merged.is_object()) merged = nlohmann::json::object();
  if (added.is_object()) {
    for (const auto& [key, value] : added.items()) {
      if (!value.is_null()) merged[key] = value;
    }
  }
  return to_text(merged);
}

Result<ImageRow> put_image_binary(Connection& connection, std::int64_t account,
                                  std::string_view input, Micros now) {
  const auto binary = parse_json_object(input);
  auto row = locked_image(connection, account, string_at(binary, {"imageName"}), now);
  if (!row) return row;
  row->id = string_at(binary, {"id"});
  if (auto checked = check_key("id", row->id); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  row->data = merged_object(row->data, input);
  if (auto put = put_image(connection, account, *row); !put) {
    return std::unexpected(std::move(put.error()));
  }
  return row;
}

Result<ImageRow> patch_image_binary(Connection& connection, std::int64_t account,
                                    std::string_view name, std::string_view patch, Micros now) {
  auto row = locked_image(connection, account, name, now);
  if (!row) return row;
  row->data = merged_object(row->data, patch);
  if (auto put = put_image(connection, account, *row); !put) {
    return std::unexpected(std::move(put.error()));
  }
  return row;
}

Result<void> put_image_registry(Connection& connection, std::int64_t account,
                                std::string_view input, Micros now) {
  const auto registry = parse_json_object(input);
  const auto binary = string_at(registry, {"binaryId"});
  if (auto checked = check_key("binaryId", binary); !checked) return checked;
  auto row = locked_image(connection, account, string_at(registry, {"imageName"}), now);
  if (!row) return std::unexpected(std::move(row.error()));
  // The list of manifests is not an image of an architecture.
  const bool is_list = value_at(registry, {"manifestList"}) == true;
  if (row->id.empty() && !is_list) row->id = binary;
  const nlohmann::json entry{{binary, registry}};
  row->registry = merged_object(row->registry, to_text(entry));
  return put_image(connection, account, *row);
}

Result<void> put_image_layers(Connection& connection, std::int64_t account, std::string_view input,
                              Micros now) {
  const auto layers = parse_json_object(input);
  for (const auto* member : {"imageName", "image", "id", "internalImageId"}) {
    const auto name = string_at(layers, {member});
    if (name.empty() || !check_key(member, name)) continue;
    auto row = image_by(connection, kLockImage, account, name);
    if (row && !*row) row = image_by(connection, kLockImageById, account, name);
    if (!row) return std::unexpected(std::move(row.error()));
    if (!*row) continue;
    const nlohmann::json entry{{"layers", layers}};
    (*row)->data = merged_object((*row)->data, to_text(entry));
    (*row)->updated_at = now;
    return put_image(connection, account, **row);
  }
  return {};
}

Result<std::optional<ImageRow>> find_image(Connection& connection, std::int64_t account,
                                           std::string_view name) {
  return image_by(connection, kFindImage, account, name);
}

Result<void> save_annotation(Connection& connection, std::int64_t account, std::string_view input,
                             Micros now) {
  const auto annotation = parse_json_object(input);
  const auto entity_type = string_at(annotation, {"entityType"});
  const auto type = string_at(annotation, {"type"});
  const auto key = string_at(annotation, {"key"});
  const auto& object = value_at(annotation, {"k8sEntityId"});
  const auto entity =
      object.is_object() ? to_text(object) : string_at(annotation, {"logicEntityId", "id"});
  const std::array<std::pair<std::string_view, std::string_view>, 4> parts{
      {{"entityType", entity_type}, {"type", type}, {"key", key}, {"entity", entity}}};
  for (const auto& [field, text] : parts) {
    if (auto checked = check_key(field, text); !checked) return checked;
  }
  auto value = annotation_value(annotation);
  if (value.size() <= kMaxImageData) {
    const auto added =
        connection.run(kAddAnnotation, {account, entity_type, entity, type, key, value, now});
    if (!added) return std::unexpected(added.error());
    if (added->changed() == 1) return {};
  }
  const auto known = connection.run(kLockAnnotation, {account, entity_type, entity, type, key});
  if (!known) return std::unexpected(known.error());
  if (!known->empty() && value.starts_with('{')) {
    value = merged_object(known->text(0, 0), value);
  }
  if (value.size() > kMaxImageData) {
    return fail(ErrorCode::too_large, "the value of an annotation exceeds 1 MiB");
  }
  return connection.execute(kPutAnnotation, {account, entity_type, entity, type, key, value, now});
}

Result<std::vector<AnnotationRow>> list_annotations(Connection& connection, std::int64_t account,
                                                    std::string_view entity_type,
                                                    std::string_view entity) {
  const auto rows = connection.run(kAnnotations, {account, entity_type, entity});
  if (!rows) return std::unexpected(rows.error());
  std::vector<AnnotationRow> found;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    found.push_back({.entity_type = rows->string(row, 0),
                     .entity = rows->string(row, 1),
                     .type = rows->string(row, 2),
                     .key = rows->string(row, 3),
                     .value = rows->string(row, 4)});
  }
  return found;
}

std::span<const Statement> image_statements() {
  return kImageStatements;
}

}  // namespace gitops::control_plane_server
