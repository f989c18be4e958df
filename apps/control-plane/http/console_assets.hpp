#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "common/http/message.hpp"
#include "common/http/router.hpp"

namespace gitops::control_plane_server {

// A file of the console, which the build puts into the program. Empty forms do not exist.
struct ConsoleAsset {
  std::string_view path;  // "/assets/index-1a2b3c.js"
  std::string_view media_type;
  std::string_view raw;
  std::string_view gzip;
  std::string_view brotli;
  std::string_view hash;  // of `raw`
};

// Returns all files, "/index.html" among them. The build makes this function.
std::span<const ConsoleAsset> console_assets();

// Returns the response to a GET or HEAD of a file. The smallest form is chosen that Accept-Encoding allows; each form has
// an ETag of its own. Names below /assets contain a hash of their content and are kept for a year, all others are
// revalidated.
http::Response asset_response(const ConsoleAsset& asset, const http::Headers& request);

// Returns whether a path that no other row serves is an address of the console, so that it gets the page. Paths below
// those of an API are not, since their clients need an error that they can read; neither is a request without text/html
// in Accept, which no browser sends for a page.
bool is_console_page(std::string_view path, const http::Headers& request);

// Returns the rows of the console: its files, the page for all other addresses, and 404 for every other request that no
// row serves. `assets` must outlive them.
std::vector<http::Route> console_routes(std::span<const ConsoleAsset> assets);

}  // namespace gitops::control_plane_server
