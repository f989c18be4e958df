#include "event-reporter/event/git_files.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

constexpr std::size_t kSeveral = SIZE_MAX;
constexpr std::size_t kMaxPath = 4'096;

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && std::ranges::all_of(revision, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_empty_object(JsonView json) {
  return !json.is_object() || json.members().size() == 0;
}

}  // namespace

std::optional<std::string> source_files_request(const AppView& app) {
  const auto sync = app.status()["sync"];
  const auto source = sync["comparedTo"]["source"];
  const auto revision = sync["revision"].text();
  if (!is_commit(revision) || source["repoURL"].text().empty()) return std::nullopt;
  if (sync["comparedTo"]["sources"].items().size() != 0) return std::nullopt;
  for (const auto* other : {"chart", "helm", "kustomize", "plugin"}) {
    if (source[other].exists()) return std::nullopt;
  }
  const auto directory = source["directory"];
  if (!is_empty_object(directory["jsonnet"])) return std::nullopt;
  std::string out;
  ObjectWriter json(out);
  json.text("repoURL", source["repoURL"].text());
  json.text("revision", revision);
  json.text("targetRevision", source["targetRevision"].text());
  json.text("path", source["path"].text());
  json.raw("recurse", directory["recurse"].is_true() ? "true" : "false");
  json.text("include", directory["include"].text());
  json.text("exclude", directory["exclude"].text());
  json.end();
  return out;
}

Result<GitFiles> GitFiles::parse(std::string_view answer) {
  JsonParser parser;
  const auto root = parser.parse_object(answer, "files of the source");
  if (!root) return std::unexpected(root.error());
  if (!(*root)["files"].is_array()) {
    return fail(ErrorCode::invalid_data, "files of the source: no \"files\"");
  }
  GitFiles out;
  for (const auto file : (*root)["files"].items()) {
    const auto path = file["path"].text();
    if (path.empty() || path.size() > kMaxPath) continue;
    const auto index = out.files_.size();
    out.files_.push_back({.path = std::string(path), .text = std::string(file["text"].text())});
    out.bytes_ += sizeof(File) + path.size() + out.files_.back().text.size();
    for (const auto object : file["objects"].items()) {
      auto identity = identity_of(object);
      out.bytes_ += 64 + identity.size();
      const auto [place, is_new] = out.by_object_.emplace(std::move(identity), index);
      if (!is_new && place->second != index) place->second = kSeveral;
    }
  }
  return out;
}

const GitFiles::File* GitFiles::find(const ResourceId& id) const {
  auto found = by_object_.find(id.identity());
  if (found == by_object_.end() && !id.ns.empty()) {
    auto without = id;
    without.ns.clear();
    found = by_object_.find(without.identity());
  }
  if (found == by_object_.end() || found->second == kSeveral) return nullptr;
  return &files_[found->second];
}

}  // namespace gitops::reporter
