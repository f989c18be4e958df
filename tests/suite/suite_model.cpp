#include "suite/suite_model.hpp"

#include <algorithm>

namespace gitops::test {
namespace {

constexpr const char* kApplication = "Application";

std::string text_of(const RowPlace& place) {
  return "page " + place.page + ", " + place.kind + " " + place.name;
}

std::string text_of(const RowState& state) {
  return state.sync + " " + state.health + " at " + state.revision.substr(0, 7) + " \"" +
         state.message + "\" " + state.content;
}

}  // namespace

void SuiteModel::sync(const std::string& app, const std::string& revision,
                      const std::string& message, const Changes& changes, bool has_page) {
  App& state = apps_[app];
  state.has_page = has_page;
  state.revisions.push_back(revision);
  state.message = message;
  for (const auto& [name, content] : changes) {
    if (content) {
      state.resources[name] = {.written = state.revisions.size() - 1, .content = *content};
    } else {
      state.resources.erase(name);
    }
  }
}

void SuiteModel::judge_application(const RowPlace& place, const App& app, const PageRows& rows,
                                   std::vector<std::string>& found) const {
  const RowState expected{.sync = "SYNCED",
                          .health = "HEALTHY",
                          .revision = app.revisions.back(),
                          .message = app.message};
  const auto row = rows.find(place);
  if (row == rows.end()) {
    found.push_back(text_of(place) + " is missing");
  } else if (row->second != expected) {
    found.push_back(text_of(place) + " is " + text_of(row->second) + ", not " + text_of(expected));
  }
}

void SuiteModel::judge_resources(const std::string& page, const App& app, const PageRows& rows,
                                 std::vector<std::string>& found) const {
  for (const auto& [name, resource] : app.resources) {
    const RowPlace place{.page = page, .kind = kind_, .name = name};
    const auto row = rows.find(place);
    if (row == rows.end()) {
      found.push_back(text_of(place) + " is missing");
      continue;
    }
    const auto writer = app.revisions.begin() + static_cast<std::ptrdiff_t>(resource.written);
    const auto begin = resource.written == 0 ? writer : writer - 1;
    const auto& revision = row->second.revision;
    const bool is_recent =
        revision.empty() || std::find(begin, app.revisions.end(), revision) != app.revisions.end();
    const auto& content = row->second.content;
    const bool is_right = content.empty() || content == resource.content;
    if (row->second.sync != "SYNCED" || !is_recent || !is_right) {
      found.push_back(text_of(place) + " is " + text_of(row->second) + ", written by " +
                      writer->substr(0, 7) + " with content " + resource.content);
    }
  }
}

std::vector<std::string> SuiteModel::wrong(const PageRows& rows) const {
  std::vector<std::string> found;
  for (const auto& [name, app] : apps_) {
    judge_application({.page = kListPage, .kind = kApplication, .name = name}, app, rows, found);
    if (!app.has_page) continue;
    judge_application({.page = name, .kind = kApplication, .name = name}, app, rows, found);
    judge_resources(name, app, rows, found);
  }
  for (const auto& [place, state] : rows) {
    const auto app = apps_.find(place.page == kListPage ? place.name : place.page);
    const bool is_expected =
        app != apps_.end() &&
        (place.kind == kApplication
             ? place.name == app->first
             : place.kind == kind_ && app->second.resources.contains(place.name));
    if (!is_expected) found.push_back(text_of(place) + " is shown, and does not exist");
  }
  return found;
}

std::size_t SuiteModel::size() const {
  std::size_t rows = 0;
  for (const auto& [name, app] : apps_) rows += app.has_page ? 2 + app.resources.size() : 1;
  return rows;
}

}  // namespace gitops::test
