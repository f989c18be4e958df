#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gitops::test {

// The page that lists the Applications. Every other page is that of an Application, and has its name.
inline constexpr const char* kListPage = "list";

// The place of a row: its page, and the object that it is about.
struct RowPlace {
  std::string page;
  std::string kind;
  std::string name;
  auto operator<=>(const RowPlace&) const = default;
};

// What a row says of its object.
struct RowState {
  std::string sync;
  std::string health;        // of Applications
  std::string revision;      // commit; empty: not known, of a resource that a page has read
  std::string message;       // of the commit; of Applications
  std::string content = {};  // of resources; empty: not known, of a row that came by a stream
  bool operator==(const RowState&) const = default;
};

using PageRows = std::map<RowPlace, RowState>;

// What the pages must show: Applications with the resources that Git has for them, all of one kind, each as synced as
// the last commit left it. Pure.
class SuiteModel {
 public:
  explicit SuiteModel(std::string kind) : kind_(std::move(kind)) {}

  // What a commit did to resources, by their names: new contents, or nullopt for a deletion.
  using Changes = std::map<std::string, std::optional<std::string>>;
  // Argo CD has synced `revision`.
  // `has_page`: somebody has the page of this Application open.
  void sync(const std::string& app, const std::string& revision, const std::string& message,
            const Changes& changes, bool has_page = true);
  void remove(const std::string& app) { apps_.erase(app); }

  // One line for each row that is missing, too much, or wrong. A resource may have the revision of the commit that wrote
  // it, or of any later one. It may also have that of the commit before, with the right content: Argo CD tells of a
  // resource and of its Application by two reads, between which it may sync.
  [[nodiscard]] std::vector<std::string> wrong(const PageRows& rows) const;
  // The number of rows that have to be there.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool has(const std::string& app) const { return apps_.contains(app); }
  [[nodiscard]] std::size_t resources(const std::string& app) const {
    return apps_.at(app).resources.size();
  }

 private:
  struct Resource {
    std::size_t written = 0;  // index of the revision
    std::string content;
  };
  struct App {
    bool has_page = true;
    std::vector<std::string> revisions = {};         // oldest first
    std::string message = {};                        // of the last one
    std::map<std::string, Resource> resources = {};  // by name
  };
  void judge_application(const RowPlace& place, const App& app, const PageRows& rows,
                         std::vector<std::string>& found) const;
  void judge_resources(const std::string& page, const App& app, const PageRows& rows,
                       std::vector<std::string>& found) const;

  std::string kind_;
  std::map<std::string, App> apps_;
};

}  // namespace gitops::test
