#pragma once

#include "common/http/content_coding.hpp"

namespace gitops::control_plane_server {

// The Content-Encoding zstd (RFC 8878) of request bodies, which may consist of several frames. A frame that needs a
// window above 8 MiB is refused, as RFC 9659 requires, so a body costs at most that memory besides its output.
extern const http::ContentCoding kZstdCoding;

}  // namespace gitops::control_plane_server
