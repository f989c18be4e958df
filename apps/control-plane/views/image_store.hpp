#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"

// Images and annotations, which builds report. The inputs are JSON texts of the GraphQL inputs and are stored
// unchanged. Every function that changes rows runs within one transaction (Database::write). Errors besides those of
// Connection: invalid_argument, and too_large above kMaxImageData.
namespace gitops::control_plane_server {

inline constexpr std::size_t kMaxImageName = 1'024;
inline constexpr std::size_t kMaxImageData = 1024UL * 1024;

// A row of the table `image`.
struct ImageRow {
  std::string name;             // full name with tag
  std::string id;               // digest of the image's configuration; empty: not reported yet
  std::string data = "{}";      // ImageBinaryInput with its patches
  std::string registry = "{}";  // ImageRegistryInput by digest
  Micros updated_at = 0;
};

// Returns `stored` with the non-null members of `newer`. Both are JSON objects.
std::string merged_object(std::string_view stored, std::string_view newer);

// Stores createImageBinary and patchImageBinary, in any order: a patch of an image that is not reported yet is kept.
Result<ImageRow> put_image_binary(store::Connection& connection, std::int64_t account,
                                  std::string_view input, Micros now);
Result<ImageRow> patch_image_binary(store::Connection& connection, std::int64_t account,
                                    std::string_view name, std::string_view patch, Micros now);
// Stores createImageRegistry: one for each architecture, and one for the list of manifests.
Result<void> put_image_registry(store::Connection& connection, std::int64_t account,
                                std::string_view input, Micros now);
// Stores createImageLayers with the image of that name or id. Layers without an image are dropped.
Result<void> put_image_layers(store::Connection& connection, std::int64_t account,
                              std::string_view input, Micros now);

Result<std::optional<ImageRow>> find_image(store::Connection& connection, std::int64_t account,
                                           std::string_view name);

// A row of the table `annotation`.
struct AnnotationRow {
  std::string entity_type;  // "image"
  std::string entity;       // an image's full name, or the JSON of a K8sEntityID
  std::string type;         // "issue", "pr", …
  std::string key;
  std::string value;  // JSON
};
// Stores saveAnnotation. A second value of the same key is merged with the first.
Result<void> save_annotation(store::Connection& connection, std::int64_t account,
                             std::string_view input, Micros now);
// Returns the annotations of one entity, sorted by type and key; at most 200.
Result<std::vector<AnnotationRow>> list_annotations(store::Connection& connection,
                                                    std::int64_t account,
                                                    std::string_view entity_type,
                                                    std::string_view entity);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> image_statements();

}  // namespace gitops::control_plane_server
