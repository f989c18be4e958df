#include "support/browser.hpp"

#include <chrono>

#include "support/process.hpp"

namespace gitops::test {

std::optional<std::string> missing_browser() {
  if (find_program("chromium")) return std::nullopt;
  return "chromium is not installed";
}

std::string browse(const std::string& url) {
  const TempDir profile("gitops-browser");
  return run_or_throw(
      {"chromium", "--headless", "--disable-gpu", "--no-first-run",
       "--disable-background-networking", "--disable-component-update", "--disable-sync",
       "--disable-dev-shm-usage",
       "--no-sandbox",  // which root cannot have
       "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
       "--user-data-dir=" + profile.path().string(), "--virtual-time-budget=60000", "--dump-dom",
       url},
      {{"HOME", profile.path().string()}}, {}, std::chrono::seconds(30));
}

}  // namespace gitops::test
