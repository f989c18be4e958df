#include "suite/suite_page.hpp"

#include <utility>

#include "demo/world.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kApplications =
    "{ applications(filters: {}, pagination: {first: 100}) { edges { node { metadata { name uid } "
    "syncStatus healthStatus status { revision commitMessage } } } } }";

std::string topics_of(const std::map<std::string, std::string>& open) {
  std::string topics = "index";
  for (const auto& [name, uid] : open) topics += ",app:" + uid;
  return topics;
}

std::string text(const Json& object, const char* member) {
  const auto value = object.find(member);
  return value != object.end() && value->is_string() ? value->get<std::string>() : std::string();
}

RowState application_state(const Json& node) {
  const Json status = node.value("status", Json::object());
  return {.sync = text(node, "syncStatus"),
          .health = text(node, "healthStatus"),
          .revision = status.is_object() ? text(status, "revision") : "",
          .message = status.is_object() ? text(status, "commitMessage") : ""};
}

}  // namespace

SuitePage::SuitePage(const Executor& executor, http::Client& client, Ask ask, Options options)
    : ask_(std::move(ask)),
      options_(std::move(options)),
      stream_(std::make_unique<demo::OpenPage>(executor, client, options_.control_plane,
                                               options_.key, topics_of(options_.open))) {}

std::string SuitePage::page_of_topic(const std::string& topic) const {
  if (topic == "index") return kListPage;
  for (const auto& [name, uid] : options_.open) {
    if (topic == "app:" + uid) return name;
  }
  return topic;
}

void SuitePage::apply(const demo::OpenPage::Row& row) {
  const auto page = page_of_topic(row.text("topic"));
  if (row.is_gone) {
    is_outdated_ |= page != kListPage;
    std::erase_if(uids_, [&](const auto& entry) {
      if (entry.first.page != page || entry.second != row.text("uid")) return false;
      rows_.erase(entry.first);
      return true;
    });
    return;
  }
  const RowPlace place{.page = page, .kind = row.kind(), .name = row.name()};
  const RowState state{.sync = row.text("sync"),
                       .health = row.text("health"),
                       .revision = row.text("revision"),
                       .message = row.text("message")};
  if (place.kind == "Application") {
    rows_[place] = state;
    uids_[place] = row.text("uid");
    is_outdated_ |= page != kListPage;
  } else {
    patches_[place] = state;
  }
}

Task<PageRows> SuitePage::rows() {
  const auto& all = stream_->rows();
  while (true) {
    for (; applied_ < all.size(); ++applied_) apply(all[applied_]);
    const auto resets = stream_->resets();
    if (resets_ == resets && !is_outdated_) break;
    const auto begin = resets_ == resets ? all.size() : stream_->rows_at_reset();
    is_outdated_ = false;
    try {
      rows_ = co_await read(Contents::no);
    } catch (...) {
      is_outdated_ = true;
      throw;
    }
    resets_ = resets;
    applied_ = begin;
  }
  auto shown = rows_;
  for (const auto& [place, patch] : patches_) {
    const auto row = shown.find(place);
    if (row == shown.end()) continue;
    row->second.sync = patch.sync;
    row->second.revision = patch.revision;
  }
  co_return shown;
}

Task<std::string> SuitePage::content_of(std::string app, std::string resource) {
  const Json shown =
      co_await ask_("{ applicationResource(runtime: \"demo\", namespace: \"argocd\", name: \"" +
                    app + "\", resource: {kind: \"" + options_.kind + "\", namespace: \"" +
                    demo::kDestination + "\", name: \"" + resource + "\"}) { liveManifest } }");
  if (!shown.is_object()) co_return "no manifest";
  const auto manifest = Json::parse(text(shown, "liveManifest"), nullptr, false);
  co_return manifest.is_object() ? manifest.value("/data/value"_json_pointer, "no value")
                                 : "no manifest";
}

Task<PageRows> SuitePage::read(Contents contents) {
  PageRows rows;
  const Json list = co_await ask_(kApplications);
  for (const Json& edge : list.at("edges")) {
    const Json& node = edge.at("node");
    const std::string name = node.at("/metadata/name"_json_pointer);
    rows[{kListPage, "Application", name}] = application_state(node);
    uids_[{kListPage, "Application", name}] = node.at("/metadata/uid"_json_pointer);
  }
  for (const auto& [name, uid] : options_.open) {
    const Json app =
        co_await ask_("{ application(runtime: \"demo\", namespace: \"argocd\", name: \"" + name +
                      "\") { metadata { uid } syncStatus healthStatus status { revision "
                      "commitMessage } resources "
                      "{ kind name syncStatus } } }");
    if (!app.is_object()) continue;
    rows[{name, "Application", name}] = application_state(app);
    uids_[{name, "Application", name}] = app.at("/metadata/uid"_json_pointer);
    for (const Json& resource : app.value("resources", Json::array())) {
      if (text(resource, "kind") != options_.kind) continue;
      const auto resource_name = text(resource, "name");
      std::string content;
      if (contents == Contents::yes) content = co_await content_of(name, resource_name);
      rows[{name, options_.kind, resource_name}] = {.sync = text(resource, "syncStatus"),
                                                    .health = "",
                                                    .revision = "",
                                                    .message = "",
                                                    .content = std::move(content)};
    }
  }
  co_return rows;
}

}  // namespace gitops::test
