#include "common/control_plane/inventory.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane {
namespace {

constexpr std::size_t kDigestBytes = 16;

std::string texts_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const auto& text : texts) {
    if (out.size() > 1) out += ',';
    append_json_string(out, text, JsonEscape::minimal);
  }
  return out + "]";
}

std::string objects_json(const Inventory& inventory) {
  std::string out = "{";
  for (const auto& [uid, digest] : inventory.objects) {
    if (out.size() > 1) out += ',';
    append_json_string(out, uid, JsonEscape::minimal);
    out += ':';
    append_json_string(out, digest, JsonEscape::minimal);
  }
  return out + "}";
}

std::string resources_json(const Inventory& inventory) {
  std::string out = "{";
  for (const auto& [uid, identities] : inventory.resources) {
    if (out.size() > 1) out += ',';
    append_json_string(out, uid, JsonEscape::minimal);
    out += ':' + texts_json(identities);
  }
  return out + "}";
}

std::unexpected<Error> wrong(std::string_view member) {
  return fail(ErrorCode::invalid_data, "the inventory's " + std::string(member) + " is wrong");
}

Result<void> read_shards(JsonView json, Inventory& inventory) {
  const auto replicas = json["replicas"];
  if (!replicas.is_integer() || replicas.number() < 1 ||
      replicas.number() > std::numeric_limits<std::int32_t>::max()) {
    return wrong("replicas");
  }
  inventory.replicas = static_cast<std::uint32_t>(replicas.number());
  if (!json["shards"].is_array()) return wrong("shards");
  for (const auto shard : json["shards"].items()) {
    if (!shard.is_integer() || shard.number() < 0 || shard.number() >= replicas.number()) {
      return wrong("shards");
    }
    inventory.shards.push_back(static_cast<std::uint32_t>(shard.number()));
  }
  return {};
}

Result<void> read_listed(JsonView json, Inventory& inventory) {
  for (const auto item : json.items()) {
    if (!item["kind"].is_text()) return wrong("listed");
    inventory.listed.push_back(
        {.cluster = std::string(item["cluster"].text()), .kind = std::string(item["kind"].text())});
  }
  return {};
}

Result<void> read_objects(JsonView json, Inventory& inventory) {
  if (!json.is_object()) return wrong("objects");
  for (const auto& [uid, digest] : json.members()) {
    if (uid.empty() || !digest.is_text()) return wrong("objects");
    inventory.objects.insert_or_assign(std::string(uid), std::string(digest.text()));
  }
  return {};
}

Result<void> read_resources(JsonView json, Inventory& inventory) {
  if (!json.is_object()) return wrong("resources");
  for (const auto& [uid, identities] : json.members()) {
    if (uid.empty() || !identities.is_array()) return wrong("resources");
    auto& of = inventory.resources[std::string(uid)];
    for (const auto identity : identities.items()) {
      if (!identity.is_text()) return wrong("resources");
      of.emplace_back(identity.text());
    }
  }
  return {};
}

}  // namespace

std::uint32_t shard_of(std::string_view name, std::uint32_t replicas) {
  if (replicas <= 1 || name.empty()) return 0;
  return fnv1a_32(name) % replicas;
}

std::string resources_digest(std::vector<std::string> identities) {
  std::ranges::sort(identities);
  Sha256 sum;
  for (const auto& identity : identities) {
    sum.add(identity);
    sum.add("\n");
  }
  const auto bytes = sum.finish();
  return hex_encode(bytes_of(bytes).substr(0, kDigestBytes));
}

std::string to_json(const Inventory& inventory) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("token", inventory.token);
  writer.text("mode", inventory.is_of_applications ? "app" : "resource");
  std::string shards = "[";
  for (const auto shard : inventory.shards) {
    if (shards.size() > 1) shards += ',';
    shards += std::to_string(shard);
  }
  writer.raw("shards", shards + "]");
  writer.raw("replicas", std::to_string(inventory.replicas));
  writer.raw("sequence", std::to_string(inventory.sequence));
  if (!inventory.listed.empty()) {
    auto& listed = writer.begin("listed");
    listed += '[';
    for (const auto& [cluster, kind] : inventory.listed) {
      if (!listed.ends_with('[')) listed += ',';
      ObjectWriter item(listed);
      item.text("cluster", cluster);
      item.text("kind", kind);
      item.end();
    }
    listed += ']';
  }
  if (inventory.is_complete) {
    writer.raw("objects", objects_json(inventory));
  } else {
    writer.raw("resources", resources_json(inventory));
    writer.raw("last", inventory.is_last ? "true" : "false");
  }
  writer.end();
  return out;
}

Result<Inventory> read_inventory(JsonParser& parser, std::string_view json) {
  const auto parsed = parser.parse_object(json, "the inventory");
  if (!parsed) return std::unexpected(parsed.error());
  const auto& root = *parsed;
  Inventory inventory;
  inventory.token = root["token"].text();
  if (inventory.token.empty()) return wrong("token");
  const auto mode = root["mode"].text();
  if (mode != "app" && mode != "resource") return wrong("mode");
  inventory.is_of_applications = mode == "app";
  inventory.sequence = root["sequence"].number();
  if (inventory.sequence <= 0) return wrong("sequence");
  if (auto read = read_shards(root, inventory); !read) return std::unexpected(read.error());
  if (auto read = read_listed(root["listed"], inventory); !read) {
    return std::unexpected(read.error());
  }
  inventory.is_complete = root["objects"].exists();
  inventory.is_last = !inventory.is_complete && root["last"].is_true();
  auto read = inventory.is_complete ? read_objects(root["objects"], inventory)
                                    : read_resources(root["resources"], inventory);
  if (!read) return std::unexpected(read.error());
  return inventory;
}

}  // namespace gitops::control_plane
