#pragma once

#include <optional>
#include <string>

namespace gitops::test {

/// One line that names what browse() needs and this machine lacks; nullopt when nothing is missing.
std::optional<std::string> missing_browser();

/// Opens the page in a headless Chromium with an empty profile and returns the document as HTML
/// when its scripts are done: no request is open and no timer is due within a minute. The page can
/// reach nothing but 127.0.0.1. Throws after 30 seconds.
std::string browse(const std::string& url);

}  // namespace gitops::test
