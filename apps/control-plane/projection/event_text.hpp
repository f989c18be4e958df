#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "common/core/time.hpp"
#include "control-plane/projection/object.hpp"

// Texts of events in the form in which they are stored.
namespace gitops::control_plane_server {

// Returns microseconds of a time in RFC 3339; 0 when the text has another form.
Micros time_of(std::string_view time);

// Returns a text for display, cut between characters to at most this many bytes. Blanks replace NULs, since PostgreSQL
// does not accept them.
std::string display_text(std::string_view text, std::size_t max_bytes = 1'000);

// Returns a part of a key, which indexes and URLs contain. invalid_data, with a message that begins with the name of
// the field: it is required and missing, longer than the limit, or has a control character.
Result<std::string> key_text(JsonView view, std::string_view field, bool is_required,
                             std::size_t max_bytes);

// Returns a time as RFC 3339 with milliseconds; empty for 0.
std::string time_text(Micros time);
Micros micros_at(WallTime time);

}  // namespace gitops::control_plane_server
