#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops::ctl {

// A control plane, and how to log in to it.
struct Context {
  std::string name = {};
  std::string url = {};
  Secret token = {};            // an API key; empty: it is in `token_file`
  std::string token_file = {};  // read before each command
  std::string ca_file = {};     // empty: the system's authorities
  bool insecure = false;        // any certificate is accepted
};

// The file of `gitopsctl login`: the contexts of one person.
struct Contexts {
  std::string current = {};       // empty: none
  std::vector<Context> all = {};  // by name

  [[nodiscard]] const Context* find(const std::string& name) const;
  // Adds it, or replaces the one of that name.
  void put(Context context);
  // Returns whether there was one of that name. The current one is none afterwards, if it was that.
  bool remove(const std::string& name);
};

// Reads the text of the file, JSON. invalid_data names the wrong context.
Result<Contexts> parse_contexts(const std::string& text);
// Returns the text of the file.
std::string contexts_text(const Contexts& contexts);

// The path of the file: $GITOPSCTL_CONTEXTS, $XDG_CONFIG_HOME/gitopsctl/contexts.json, or
// ~/.config/gitopsctl/contexts.json. Empty without a home.
std::string contexts_path(const cli::Environment& environment);
// Reads the file; no contexts when there is none. `forbidden` when others may read it.
Result<Contexts> read_contexts(const std::string& path);
// Replaces the file, with mode 0600. Makes its folder with mode 0700 when it is missing.
Result<void> write_contexts(const std::string& path, const Contexts& contexts);
// Reads the file, changes the contexts by `change` and writes them. No other gitopsctl changes the file meanwhile.
// An error of `change` is returned, and nothing is written.
Result<void> update_contexts(const std::string& path,
                             const std::function<Result<void>(Contexts&)>& change);

}  // namespace gitops::ctl
