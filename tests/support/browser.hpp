#pragma once

#include <optional>
#include <string>

namespace gitops::test {

/// What this machine lacks for browse(), in one line; nullopt: nothing.
std::optional<std::string> missing_browser();

/// Opens the page in a headless Chromium with an empty profile and returns the document as HTML
/// when its scripts are done: no request is open, and no timer of the next minute is left. Nothing
/// but 127.0.0.1 can be reached from it. Throws when that takes longer than half a minute.
std::string browse(const std::string& url);

}  // namespace gitops::test
