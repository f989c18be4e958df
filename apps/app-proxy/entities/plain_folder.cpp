#include "app-proxy/entities/plain_folder.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/tree_path.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxText = std::size_t{512} * 1024;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxAlternatives = 64;
constexpr std::size_t kMaxPattern = 1'024;

// Collects the name of an object from the events of one document.
class NameReader : public YAML::EventHandler {
 public:
  std::string api_version, kind, ns, name;
  int start = 0;

  void OnDocumentStart(const YAML::Mark& mark) override { start = mark.pos; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override { value({}); }
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override { value({}); }
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& text) override {
    value(text);
  }
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    open(false);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(true);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    bool is_map = false;
    bool is_key = true;  // the next scalar is a key
    std::string key = {};
  };
  void open(bool is_map) {
    if (levels_.size() >= kMaxDepth) throw YAML::ParserException({}, "nested too deeply");
    if (!levels_.empty() && levels_.back().is_key) levels_.back().key.clear();
    levels_.push_back({.is_map = is_map});
  }
  void close() {
    levels_.pop_back();
    // Ends a map or list that was a key or a value.
    if (!levels_.empty()) levels_.back().is_key = !levels_.back().is_key;
  }
  void value(const std::string& text) {
    if (levels_.empty() || !levels_.back().is_map) return;
    Level& level = levels_.back();
    if (level.is_key) {
      level.key = text;
      level.is_key = false;
      return;
    }
    level.is_key = true;
    if (levels_.size() == 1) {
      if (level.key == "apiVersion") api_version = text;
      if (level.key == "kind") kind = text;
    } else if (levels_.size() == 2 && levels_.front().is_map && levels_.front().key == "metadata") {
      if (level.key == "name") name = text;
      if (level.key == "namespace") ns = text;
    }
  }
  std::vector<Level> levels_;
};

// Matches a pattern that has no special characters except "*" and "?".
bool matches_plain(std::string_view pattern, std::string_view path) {
  std::size_t p = 0;
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (at < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = at;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == path[at])) {
      ++p;
      ++at;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Returns the pattern with each of the alternatives in its braces. Empty when it is not supported.
std::vector<std::string> alternatives(std::string_view pattern) {
  if (pattern.size() > kMaxPattern || pattern.find_first_of("[]\\!") != std::string_view::npos) {
    return {};
  }
  std::vector<std::string> out{""};
  while (!pattern.empty()) {
    const auto open = pattern.find_first_of("{}");
    for (auto& text : out) text += pattern.substr(0, open);
    if (open == std::string_view::npos) return out;
    if (pattern[open] == '}') return {};
    const auto close = pattern.find_first_of("{}", open + 1);
    if (close == std::string_view::npos || pattern[close] == '{') return {};
    auto inside = pattern.substr(open + 1, close - open - 1);
    std::vector<std::string> next;
    while (true) {
      const auto comma = inside.find(',');
      for (const auto& text : out) {
        if (next.size() == kMaxAlternatives) return {};
        next.push_back(text + std::string(inside.substr(0, comma)));
      }
      if (comma == std::string_view::npos) break;
      inside.remove_prefix(comma + 1);
    }
    out = std::move(next);
    pattern.remove_prefix(close + 1);
  }
  return out;
}

std::string_view group_of(std::string_view api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

bool is_secret(const ManifestName& name) {
  return name.group.empty() && name.kind == "Secret";
}

}  // namespace

Result<PlainFolder> read_plain_folder(std::string_view body) {
  JsonParser parser;
  const auto root = parser.parse_object(body, "body");
  if (!root) return fail(ErrorCode::invalid_argument, root.error().message);
  const auto text = [&](std::string_view key) { return std::string((*root)[key].text()); };
  PlainFolder out{.repository = text("repoURL"),
                  .commit = text("revision"),
                  .branch = text("targetRevision"),
                  .folder = text("path"),
                  .is_recursive = (*root)["recurse"].is_true(),
                  .include = text("include"),
                  .exclude = text("exclude")};
  if (out.branch == "HEAD") out.branch.clear();
  while (out.folder.starts_with("./")) out.folder.erase(0, 2);
  while (out.folder.ends_with('/')) out.folder.pop_back();
  if (out.folder == ".") out.folder.clear();
  if (!is_object_id(out.commit)) {
    return fail(ErrorCode::invalid_argument, "\"revision\" must be the full id of a commit");
  }
  if (!out.folder.empty()) {
    if (auto checked = check_tree_path(out.folder); !checked) {
      return fail(ErrorCode::invalid_argument, "\"path\": " + checked.error().message);
    }
  }
  return out;
}

bool is_other_source(std::string_view path) {
  // Argo CD's own names. Those of kustomize are konfig.RecognizedKustomizationFileNames().
  return path == "Chart.yaml" || path == "kustomization.yaml" || path == "kustomization.yml" ||
         path == "Kustomization" || path.starts_with(".argocd-source");
}

bool matches_pattern(std::string_view pattern, std::string_view path) {
  const auto all = alternatives(pattern);
  return std::ranges::any_of(all, [&](const auto& one) { return matches_plain(one, path); });
}

bool is_manifest_file(const PlainFolder& folder, std::string_view path) {
  if (!folder.is_recursive && path.contains('/')) return false;
  if (!path.ends_with(".yaml") && !path.ends_with(".yml") && !path.ends_with(".json")) return false;
  if (!folder.exclude.empty() && matches_pattern(folder.exclude, path)) return false;
  return folder.include.empty() || matches_pattern(folder.include, path);
}

Result<std::vector<ManifestName>> names_in(std::string_view text) {
  std::vector<ManifestName> out;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    int before = -1;
    while (true) {
      NameReader reader;
      if (!parser.HandleNextDocument(reader)) return out;
      // yaml-cpp 0.7 finds documents without end in some invalid texts, as in ",,".
      if (reader.start <= before) return fail(ErrorCode::invalid_data, "it is not YAML");
      before = reader.start;
      if (reader.api_version.empty() || reader.kind.empty() || reader.name.empty()) continue;
      out.push_back({.group = std::string(group_of(reader.api_version)),
                     .kind = std::move(reader.kind),
                     .ns = std::move(reader.ns),
                     .name = std::move(reader.name)});
    }
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::invalid_data, std::string("it is not YAML: ") + error.what());
  }
}

std::string plain_folder_answer(const std::vector<PlainFile>& files) {
  std::string out = "{\"files\":[";
  for (const auto& file : files) {
    if (!is_utf8(file.text)) continue;
    const auto names = names_in(file.text);
    if (!names || names->empty()) continue;
    if (!out.ends_with('[')) out += ',';
    ObjectWriter json(out);
    json.text("path", file.path);
    if (file.text.size() <= kMaxText && std::ranges::none_of(*names, is_secret)) {
      json.text("text", file.text);
    }
    std::string& objects = json.begin("objects");
    objects += '[';
    for (const auto& name : *names) {
      if (!objects.ends_with('[')) objects += ',';
      ObjectWriter object(objects);
      object.text("group", name.group);
      object.text("kind", name.kind);
      object.text("namespace", name.ns);
      object.text("name", name.name);
      object.end();
    }
    objects += ']';
    json.end();
  }
  return out += "]}";
}

}  // namespace gitops::app_proxy
