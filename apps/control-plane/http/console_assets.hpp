#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/message.hpp"
#include "common/http/router.hpp"

namespace gitops::control_plane_server {

// A file of the console, which the build puts into the program. Empty forms do not exist: a compressed one that would save
// nothing, and the raw one of a file that has a gzip form, since all browsers take that.
struct ConsoleAsset {
  std::string_view path;  // "/assets/index-1a2b3c.js"
  std::string_view media_type;
  std::string_view raw;
  std::string_view gzip;
  std::string_view brotli;
  std::string_view hash;  // of the raw form
};

// Returns all files, "/index.html" among them. The build makes this function.
std::span<const ConsoleAsset> console_assets();

// Returns the response to a GET or HEAD of a file. The smallest form is chosen that Accept-Encoding allows; each form has
// an ETag of its own. The raw form is inflated where it is missing. Names below /assets contain a hash of their content
// and are kept for a year, all others are revalidated. With `origins`, the page may send requests to them, too, and the
// response is for one user.
http::Response asset_response(const ConsoleAsset& asset, const http::Headers& request,
                              const std::vector<std::string>& origins = {});

// Returns whether a path that no other row serves is an address of the console, so that it gets the page. Paths below
// those of an API are not, since their clients need an error that they can read; neither is a request without text/html
// in Accept, which no browser sends for a page.
bool is_console_page(std::string_view path, const http::Headers& request);

// Returns the origins of other hosts to which the page at this address may send requests: those of runtimes.
using PageOrigins = std::function<Task<std::vector<std::string>>(http::Exchange&)>;

// Returns the rows of the console: its files, the page for all other addresses, and 404 for every other request that no
// row serves. `assets` must outlive them. Without `page_origins` the page reaches this server alone.
std::vector<http::Route> console_routes(std::span<const ConsoleAsset> assets,
                                        PageOrigins page_origins);

}  // namespace gitops::control_plane_server
