#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/image_store.hpp"

// GraphQL views of images. Pure.
namespace gitops::control_plane_server {

// Returns the JSON of type ImageBinary.
std::string image_binary_json(const ImageRow& row, const ViewContext& context);
// Return the JSON of types ImageRegistry and ImageLayers: the stored input, completed by values that the client did not
// know.
std::string image_registry_json(std::string_view input);
std::string image_layers_json(std::string_view input, const ViewContext& context);

// The data of an image of a release: its row and its annotations.
struct ImageFacts {
  std::optional<ImageRow> row = {};
  std::vector<AnnotationRow> annotations = {};
};
// Writes an element of type Images.
void write_image(ArrayJson& out, std::string_view name, const ImageFacts& facts);

}  // namespace gitops::control_plane_server
