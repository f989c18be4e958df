#pragma once

#include <string>
#include <string_view>
#include <vector>

// The one pass that takes secrets out of texts before they leave the machine. Pure.
namespace gitops::ctl {

inline constexpr std::string_view kRedacted = "[redacted]";

// Takes out, whatever the form of the text (logs, JSON, YAML, metrics, flags, headers, URLs):
// - values that hide() was told, also in base64, in JSON escapes and percent-encoded;
// - values of keys, fields, flags, headers and parameters whose name names a secret;
// - user names and passwords of URLs;
// - private keys and everything else that is PEM in base64; JSON Web Tokens; API keys of a control plane; tokens of
//   well-known services; the credential behind Bearer and Basic.
// It rather takes out too much. A secret without any of these marks is not recognised: what may hold one is left out
// before.
class Redactor {
 public:
  // Adds a secret value. JSON is taken apart, and texts of several lines are hidden line by line. Texts of less than 8
  // bytes are ignored, since they are parts of innocent words.
  void hide(std::string_view value);
  [[nodiscard]] std::string redacted(std::string_view text) const;

 private:
  void hide_forms(std::string_view value);

  std::vector<std::string> hidden_;  // sorted by length, the longest first
};

// Returns whether a name is that of a secret: "ARGOCD_TOKEN", "client-secret", "--password", but not "secretName".
bool names_secret(std::string_view name);

}  // namespace gitops::ctl
