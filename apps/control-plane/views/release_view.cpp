#include "control-plane/views/release_view.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "control-plane/projection/event.hpp"
#include "control-plane/storage/body_row.hpp"
#include "control-plane/storage/object_row.hpp"
#include "control-plane/views/application_view.hpp"
#include "control-plane/views/image_name.hpp"
#include "control-plane/views/object_query.hpp"
#include "control-plane/views/rollout_view.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Statement;

// Rows of one round when conditions are checked row by row.
constexpr std::size_t kReleaseRound = 200;
// Limits of one page: images whose builds are looked up, and Applications whose bodies are kept.
constexpr std::size_t kMaxImageLookups = 2'000;
constexpr std::size_t kMaxApplications = 200;
// Number of columns before those of the Application.
constexpr std::size_t kReleaseColumns = 18;

constexpr std::string_view kReleaseSelect =
    "SELECT r.history_id, r.revision, r.operation_revision, r.author, r.message, r.commit_at, "
    "r.started_at, r.finished_at, r.sync, r.health, r.phase, r.initiator, r.images, "
    "r.was_degraded, p.history_id, p.images, r.object, "
    "o.history_id, o.id, ";
constexpr std::string_view kReleaseFrom =
    " FROM app_release r JOIN object o ON o.id = r.object LEFT JOIN app_release p ON "
    "p.object = r.object AND p.history_id = (SELECT max(q.history_id) FROM app_release q WHERE "
    "q.object = r.object AND q.history_id < r.history_id)";
constexpr std::string_view kOfAccount = " WHERE r.account = $1 AND $2 = -1";
// The condition leaves out the account of the release, whose index SQLite would use.
constexpr std::string_view kOfObject = " WHERE o.account = $1 AND r.object = $2";
// Sets of texts as in object_query.cpp.
constexpr std::string_view kReleaseWhere =
    " AND ($3 = '' OR strpos($3, '\n' || o.runtime || '\n') > 0) AND "
    "($4 = '' OR strpos($4, '\n' || o.name || '\n') > 0) AND "
    "($5 = '' OR strpos($5, '\n' || o.namespace || '\n') > 0) AND "
    "($6 = -1 OR r.history_id = $6) AND "
    "(CAST($7 AS BIGINT) = 0 OR r.started_at >= CAST($7 AS BIGINT)) AND "
    "(CAST($8 AS BIGINT) = 0 OR r.started_at <= CAST($8 AS BIGINT))";
constexpr std::string_view kByCreatedAsc =
    " AND (r.started_at, r.object, r.history_id) > ($9, $10, $11) ORDER BY r.started_at, "
    "r.object, r.history_id LIMIT $12";
constexpr std::string_view kByCreatedDesc =
    " AND (r.started_at, r.object, r.history_id) < ($9, $10, $11) ORDER BY r.started_at DESC, "
    "r.object DESC, r.history_id DESC LIMIT $12";
constexpr std::string_view kByHealthAsc =
    " AND (r.health, r.object, r.history_id) > ($9, $10, $11) ORDER BY r.health, "
    "r.object, r.history_id LIMIT $12";
constexpr std::string_view kByHealthDesc =
    " AND (r.health, r.object, r.history_id) < ($9, $10, $11) ORDER BY r.health DESC, "
    "r.object DESC, r.history_id DESC LIMIT $12";
constexpr std::string_view kByHistoryAsc =
    " AND (r.history_id, r.object, r.history_id) > ($9, $10, $11) ORDER BY r.history_id, "
    "r.object, r.history_id LIMIT $12";
constexpr std::string_view kByHistoryDesc =
    " AND (r.history_id, r.object, r.history_id) < ($9, $10, $11) ORDER BY r.history_id DESC, "
    "r.object DESC, r.history_id DESC LIMIT $12";
constexpr std::string_view kBySyncAsc =
    " AND (r.sync, r.object, r.history_id) > ($9, $10, $11) ORDER BY r.sync, "
    "r.object, r.history_id LIMIT $12";
constexpr std::string_view kBySyncDesc =
    " AND (r.sync, r.object, r.history_id) < ($9, $10, $11) ORDER BY r.sync DESC, "
    "r.object DESC, r.history_id DESC LIMIT $12";
template <const std::string_view& scope, const std::string_view& order>
constexpr std::string_view kReleases =
    store::joined<kReleaseSelect, kObjectColumnsOfO, kReleaseFrom, scope, kReleaseWhere, order>;

// The statements by scope, order and direction; see statement_at().
constexpr std::array<Statement, 16> kReleaseStatements{{
    {.name = "views.releases_of_account_created_asc", .sql = kReleases<kOfAccount, kByCreatedAsc>},
    {.name = "views.releases_of_account_created_desc",
     .sql = kReleases<kOfAccount, kByCreatedDesc>},
    {.name = "views.releases_of_account_health_asc", .sql = kReleases<kOfAccount, kByHealthAsc>},
    {.name = "views.releases_of_account_health_desc", .sql = kReleases<kOfAccount, kByHealthDesc>},
    {.name = "views.releases_of_account_history_asc", .sql = kReleases<kOfAccount, kByHistoryAsc>},
    {.name = "views.releases_of_account_history_desc",
     .sql = kReleases<kOfAccount, kByHistoryDesc>},
    {.name = "views.releases_of_account_sync_asc", .sql = kReleases<kOfAccount, kBySyncAsc>},
    {.name = "views.releases_of_account_sync_desc", .sql = kReleases<kOfAccount, kBySyncDesc>},
    {.name = "views.releases_of_object_created_asc", .sql = kReleases<kOfObject, kByCreatedAsc>},
    {.name = "views.releases_of_object_created_desc", .sql = kReleases<kOfObject, kByCreatedDesc>},
    {.name = "views.releases_of_object_health_asc", .sql = kReleases<kOfObject, kByHealthAsc>},
    {.name = "views.releases_of_object_health_desc", .sql = kReleases<kOfObject, kByHealthDesc>},
    {.name = "views.releases_of_object_history_asc", .sql = kReleases<kOfObject, kByHistoryAsc>},
    {.name = "views.releases_of_object_history_desc", .sql = kReleases<kOfObject, kByHistoryDesc>},
    {.name = "views.releases_of_object_sync_asc", .sql = kReleases<kOfObject, kBySyncAsc>},
    {.name = "views.releases_of_object_sync_desc", .sql = kReleases<kOfObject, kBySyncDesc>},
}};

const Statement& statement_at(bool is_of_object, ReleaseOrder order, bool is_descending) {
  const std::size_t at =
      (is_of_object ? 8U : 0U) + static_cast<std::size_t>(order) * 2 + (is_descending ? 1U : 0U);
  return kReleaseStatements.at(at);
}

ReleaseRow release_row(const store::Rows& rows, std::size_t row) {
  std::size_t at = 0;
  const auto number = [&] { return rows.number(row, at++); };
  const auto text = [&] { return rows.string(row, at++); };
  ReleaseRow found;
  auto& release = found.release;
  release.history_id = number();
  for (auto* part :
       {&release.revision, &release.operation_revision, &release.author, &release.message}) {
    *part = text();
  }
  for (auto* part : {&release.commit_at, &release.started_at, &release.finished_at}) {
    *part = number();
  }
  release.sync = static_cast<SyncStatus>(number());
  release.health = static_cast<HealthStatus>(number());
  release.phase = static_cast<Phase>(number());
  release.initiator = text();
  release.images = text();
  release.was_degraded = number() != 0;
  const bool has_before = !rows.is_null(row, at++);
  if (has_before) found.images_before = rows.string(row, at);
  at += 2;  // skips the object, too: the Application's columns contain it
  found.newest = number();
  found.application = object_state(rows, row, kReleaseColumns);
  return found;
}

std::int64_t order_value(const ReleaseRow& row, ReleaseOrder order) {
  switch (order) {
    case ReleaseOrder::created:
      return row.release.started_at;
    case ReleaseOrder::health:
      return static_cast<std::int64_t>(row.release.health);
    case ReleaseOrder::history:
      return row.release.history_id;
    case ReleaseOrder::sync:
      return static_cast<std::int64_t>(row.release.sync);
  }
  return 0;
}

bool is_current(const ReleaseRow& row) {
  return row.release.history_id == row.newest && row.application.presence != Presence::gone;
}

// --- Data of images ---

// Visits the parsed value of each annotation of this type of the release's images, each key once.
template <class Visit>
void for_each_annotation(const ReleaseFacts& facts, const std::vector<std::string>& images,
                         std::string_view type, const Visit& visit) {
  std::set<std::string_view> seen;
  for (const auto& image : images) {
    const auto known = facts.images.find(image);
    if (known == facts.images.end()) continue;
    for (const auto& annotation : known->second.annotations) {
      if (annotation.type == type && seen.insert(annotation.key).second) visit(annotation);
    }
  }
}

void write_annotations(ObjectJson& out, std::string_view key, std::string_view type,
                       const ReleaseFacts& facts, const std::vector<std::string>& images,
                       const ViewContext& context) {
  out.array(key, [&](ArrayJson& items) {
    for_each_annotation(facts, images, type, [&](const AnnotationRow& annotation) {
      items.object([&](ObjectJson& at) {
        at.text("type", annotation.type);
        // The value is a text in the public model.
        at.text("value", annotation.value);
        at.text("accountId", context.account);
        at.text("entityId", annotation.entity);
        at.text("entityType", annotation.entity_type);
        at.text("key", annotation.key);
      });
    });
  });
}

struct Committer {
  std::string avatar;
  std::string commits;  // JSON elements
};
using Committers = std::map<std::string, Committer, std::less<>>;

// Returns the committers of the pull requests, else the authors of the images.
Committers committers_of(const ReleaseFacts& facts, const std::vector<std::string>& images) {
  Committers found;
  JsonParser parser;
  for_each_annotation(facts, images, "pr", [&](const AnnotationRow& annotation) {
    const auto value = parser.parse(annotation.value, "annotation").value_or(JsonView());
    for (const auto committer : value["committers"].items()) {
      const auto name = committer["userName"].text();
      if (name.empty()) continue;
      auto& known = found[std::string(name)];
      if (known.avatar.empty()) known.avatar = committer["avatar"].text();
    }
    for (const auto commit : value["commits"].items()) {
      const auto known = found.find(commit["userName"].text());
      if (known == found.end()) continue;
      auto& commits = known->second.commits;
      if (!commits.empty()) commits += ',';
      commits += object_json([&](ObjectJson& at) {
        at.text_or_null("url", commit["url"].text());
        at.text_or_null("message", commit["message"].text());
        at.text_or_null("sha", commit["sha"].text());
        at.text_or_null("commitDate", commit["commitDate"].text());
      });
    }
  });
  if (!found.empty()) return found;
  for (const auto& image : images) {
    const auto known = facts.images.find(image);
    if (known == facts.images.end() || !known->second.row) continue;
    const auto data = parser.parse(known->second.row->data, "image").value_or(JsonView());
    const auto name = data["author"]["username"].text();
    if (!name.empty()) found[std::string(name)].avatar = data["author"]["avatarUrl"].text();
  }
  return found;
}

void write_committers(ObjectJson& out, const Committers& committers) {
  out.array("committers", [&](ArrayJson& items) {
    for (const auto& [name, committer] : committers) {
      items.object([&](ObjectJson& at) {
        at.text("userName", name);
        at.text_or_null("avatar", committer.avatar);
        at.raw("commits", '[' + committer.commits + ']');
      });
    }
  });
}

void write_builds(ObjectJson& out, const ReleaseFacts& facts,
                  const std::vector<std::string>& images) {
  std::set<std::string> seen;
  JsonParser parser;
  out.array("builds", [&](ArrayJson& items) {
    for (const auto& image : images) {
      const auto known = facts.images.find(image);
      if (known == facts.images.end() || !known->second.row) continue;
      const auto data = parser.parse(known->second.row->data, "image").value_or(JsonView());
      const auto name = data["workflowName"].text();
      const auto url = data["workflowUrl"].text();
      const bool is_new = seen.insert(std::string(name) + '\n' + std::string(url)).second;
      if ((name.empty() && url.empty()) || !is_new) continue;
      items.object([&](ObjectJson& at) {
        at.text_or_null("workflowName", name);
        at.text_or_null("workflowUrl", url);
        at.text_or_null("ciProvider", data["ciProvider"].text());
      });
    }
  });
}

// --- Changes of the release ---

void write_images(ObjectJson& out, const std::vector<std::string>& images,
                  const ReleaseFacts& facts) {
  static const ImageFacts kNothing;
  out.array("images", [&](ArrayJson& items) {
    for (const auto& image : images) {
      const auto known = facts.images.find(image);
      write_image(items, image, known == facts.images.end() ? kNothing : known->second);
    }
  });
}

using ServiceImages = std::map<std::string, std::vector<std::string>>;

// Writes the workload's replicas, which are known only for the current state.
void write_replicas(ObjectJson& out, std::string_view name, bool is_present,
                    const ReleaseFacts& facts) {
  const auto service = std::ranges::find(facts.services, name, &ReleaseService::name);
  if (!is_present || service == facts.services.end()) return;
  if (service->replicas) out.number("replicas", *service->replicas);
  if (service->available_replicas) out.number("availableReplicas", *service->available_replicas);
}

void write_release_state(ObjectJson& out, std::string_view key, const ServiceImages& services,
                         bool is_present, const ReleaseFacts& facts) {
  out.object(key, [&](ObjectJson& state) {
    state.array("services", [&](ArrayJson& items) {
      for (const auto& [name, images] : services) {
        items.object([&](ObjectJson& service) {
          service.text("name", name);
          write_images(service, images, facts);
          write_replicas(service, name, is_present, facts);
        });
      }
    });
    state.array("rollouts", [&](ArrayJson& items) {
      if (!is_present) return;
      for (const auto& rollout : facts.rollouts) items.next() += rollout;
    });
  });
}

void write_transition(ObjectJson& out, const ServiceImages& before, const ServiceImages& after,
                      bool is_present, const ReleaseFacts& facts) {
  std::set<std::string> names;
  for (const auto& [name, images] : before) names.insert(name);
  for (const auto& [name, images] : after) names.insert(name);
  const auto write_side = [&](ObjectJson& at, std::string_view key, const std::string& name,
                              const ServiceImages& side, bool has_replicas) {
    const auto images = side.find(name);
    if (images == side.end()) {
      at.null(key);
      return;
    }
    at.object(key, [&](ObjectJson& state) {
      write_images(state, images->second, facts);
      write_replicas(state, name, has_replicas, facts);
    });
  };
  out.object("transition", [&](ObjectJson& transition) {
    transition.array("services", [&](ArrayJson& items) {
      for (const auto& name : names) {
        const auto old = before.find(name);
        const auto now = after.find(name);
        const bool is_same = old != before.end() && now != after.end() &&
                             std::ranges::is_permutation(old->second, now->second);
        if (is_same) continue;
        items.object([&](ObjectJson& at) {
          at.text("name", name);
          write_side(at, "from", name, before, false);
          write_side(at, "to", name, after, is_present);
        });
      }
    });
    transition.array("rollouts", [&](ArrayJson& items) {
      if (!is_present) return;
      for (const auto& rollout : facts.rollouts) {
        items.object([&](ObjectJson& at) {
          JsonParser parser;
          const auto name = parser.parse(rollout, "rollout").value_or(JsonView());
          at.text("name", name["name"].text());
          at.null("from");
          at.raw("to", rollout);
        });
      }
    });
  });
}

bool is_child(JsonView resource) {
  return resource["kind"].text() == "Application" && resource["group"].text() == kArgoGroup;
}

void write_children_of(ObjectJson& out, JsonView application, const ReleaseFacts& facts) {
  out.array("childApps", [&](ArrayJson& items) {
    for (const auto resource : application["status"]["resources"].items()) {
      if (!is_child(resource)) continue;
      if (facts.children && !facts.children->contains(resource["name"].text())) continue;
      items.object([&](ObjectJson& at) {
        at.text("name", resource["name"].text());
        at.text("status", to_string(sync_status_of(resource["status"].text())));
      });
    }
  });
}

// Writes the status of a deployment, type ArgoCDApplicationStatus.
void write_deployment(ObjectJson& out, const Release& release, JsonView application) {
  out.object("status", [&](ObjectJson& at) {
    at.text("syncStatus", to_string(release.sync));
    at.text_or_null("syncStartedAt", time_text(release.started_at));
    at.text_or_null("syncFinishedAt", time_text(release.finished_at));
    at.text_or_null("healthStatus", to_string(release.health));
    at.text("revision", release.revision);
    at.text("version", "");
    at.text_or_null("commitAuthor", release.author);
    at.text_or_null("commitMessage", release.message);
    at.text_or_null("commitDate", time_text(release.commit_at));
    at.text_or_null("commitUrl",
                    commit_url(main_source(application)["repoURL"].text(), release.revision));
    at.number("historyId", release.history_id);
  });
}

// --- Loading ---

// Reads the data of releases' views, each Application and image once.
class ReleaseReader {
 public:
  ReleaseReader(Connection& connection, std::int64_t account, const ReleaseList& list)
      : connection_(connection), account_(account), list_(list) {}

  // Reads the current data of the release's Application; its body is application().
  Result<ReleaseFacts> facts_of(const ReleaseRow& row) {
    ReleaseFacts facts;
    const bool needs_body = list_.with_application || !list_.filter.group.empty();
    if (needs_body || list_.with_services) {
      auto known = application_of(row);
      if (!known) return std::unexpected(std::move(known.error()));
      facts.services = (*known)->services;
      if (is_current(row)) facts.rollouts = (*known)->rollouts;
      if (parsed_object_ != row.application.id) parsed_.read((*known)->body);
      parsed_object_ = row.application.id;
      if (list_.accepts && list_.with_application && is_current(row)) {
        auto children = accepted_children(row.application);
        if (!children) return std::unexpected(std::move(children.error()));
        facts.children = std::move(*children);
      }
    }
    if (list_.with_images || list_.filter.needs_facts()) {
      for (const auto& images : {row.release.images, row.images_before.value_or("[]")}) {
        for (const auto& image : images_of(images)) {
          auto known = image_of(image);
          if (!known) return std::unexpected(std::move(known.error()));
          facts.images.emplace(image, std::move(*known));
        }
      }
    }
    return facts;
  }
  [[nodiscard]] JsonView application() const { return parsed_.live(); }

 private:
  struct Known {
    std::optional<ObjectBody> body;
    std::vector<ReleaseService> services;
    std::vector<std::string> rollouts;
  };

  // Returns the names of the child Applications of the parsed Application that the list accepts.
  Result<std::set<std::string, std::less<>>> accepted_children(const ObjectState& parent) {
    std::set<std::string, std::less<>> names;
    ParsedBody body;
    for (const auto resource : application()["status"]["resources"].items()) {
      if (!is_child(resource)) continue;
      const auto child = find_object(connection_, account_,
                                     {.runtime = parent.key.runtime,
                                      .object_namespace = std::string(resource["namespace"].text()),
                                      .name = std::string(resource["name"].text())},
                                     BodyUse::read);
      if (!child) return std::unexpected(child.error());
      if (!*child) continue;
      body.read((*child)->body);
      if (list_.accepts((*child)->state, body.live())) names.insert((*child)->state.key.name);
    }
    return names;
  }

  Result<const Known*> application_of(const ReleaseRow& row) {
    const auto& state = row.application;
    if (const auto known = applications_.find(state.id); known != applications_.end()) {
      return &known->second;
    }
    if (applications_.size() >= kMaxApplications) {
      applications_.clear();
      parsed_object_ = 0;
    }
    Known known;
    auto body = read_body(connection_, account_, state.id);
    if (body) {
      known.body = std::move(*body);
    } else if (body.error().code != ErrorCode::not_found &&
               body.error().code != ErrorCode::invalid_data) {
      return std::unexpected(std::move(body.error()));
    }
    if (list_.with_services) {
      if (auto read = read_services(state, known); !read) {
        return std::unexpected(std::move(read.error()));
      }
    }
    return &applications_.emplace(state.id, std::move(known)).first->second;
  }

  Result<void> read_services(const ObjectState& state, Known& known) {
    const auto workloads =
        list_children(connection_, account_,
                      {.runtime = state.key.runtime,
                       .manager_namespace = state.key.object_namespace,
                       .manager_name = state.key.name,
                       .kinds = {"Deployment", "StatefulSet", "DaemonSet", "Rollout"},
                       .origin = Origin::application},
                      BodyUse::read);
    if (!workloads) return std::unexpected(workloads.error());
    ParsedBody parsed;
    for (const auto& workload : *workloads) {
      parsed.read(workload.body);
      known.services.push_back(release_service(workload.state, parsed.live()));
      if (workload.state.key.kind != "Rollout") continue;
      const auto rollout = find_rollout(connection_, account_, workload);
      if (!rollout) return std::unexpected(rollout.error());
      parsed.read((*rollout)->row.body);
      append_rollout_state(known.rollouts.emplace_back(), (*rollout)->row.state, parsed.live(),
                           (*rollout)->runs);
    }
    return {};
  }

  Result<ImageFacts> image_of(const std::string& name) {
    if (const auto known = images_.find(name); known != images_.end()) return known->second;
    if (images_.size() >= kMaxImageLookups) return ImageFacts();
    ImageFacts facts;
    auto row = find_image(connection_, account_, name);
    if (!row) return std::unexpected(std::move(row.error()));
    facts.row = std::move(*row);
    auto annotations = list_annotations(connection_, account_, "image", name);
    if (!annotations) return std::unexpected(std::move(annotations.error()));
    facts.annotations = std::move(*annotations);
    return images_.emplace(name, std::move(facts)).first->second;
  }

  Connection& connection_;
  std::int64_t account_;
  const ReleaseList& list_;
  std::map<std::int64_t, Known> applications_;
  std::map<std::string, ImageFacts, std::less<>> images_;
  ParsedBody parsed_;
  std::int64_t parsed_object_ = 0;
};

std::string release_set(const std::vector<std::string>& texts) {
  std::string set;
  for (const auto& text : texts) {
    if (text.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) continue;
    set += (set.empty() ? "\n" : "") + text + '\n';
  }
  return set.empty() && !texts.empty() ? "\n" : set;
}

// Returns the id of the only Application that the filter names, so that its timeline is read by its key; -1 for none or
// several.
Result<std::int64_t> named_application(Connection& connection, std::int64_t account,
                                       const ReleaseFilter& filter) {
  if (filter.names.size() != 1) return -1;
  ObjectFilter objects{
      .runtimes = filter.runtimes, .names = filter.names, .namespaces = filter.namespaces};
  std::vector<std::int64_t> ids;
  for (const bool is_inactive : {false, true}) {
    objects.is_inactive = is_inactive;
    const auto rows = list_objects(connection, account, objects, {.limit = 2}, BodyUse::skip);
    if (!rows) return std::unexpected(rows.error());
    for (const auto& row : *rows) {
      if (std::ranges::find(ids, row.state.id) == ids.end()) ids.push_back(row.state.id);
    }
  }
  return ids.size() == 1 ? ids.front() : -1;
}

}  // namespace

bool ReleaseFilter::needs_facts() const {
  return !issues.empty() || !pull_requests.empty() || !committers.empty() || has_issues_only;
}

SortKey sort_key_of(const ReleaseRow& row, ReleaseOrder order) {
  return {.numbers = {order_value(row, order), row.application.id, row.release.history_id},
          .text = {}};
}

Result<std::vector<ReleaseRow>> list_releases(Connection& connection, std::int64_t account,
                                              const ReleaseFilter& filter, ReleaseOrder order,
                                              bool is_descending, const PageWindow& window) {
  const auto object = named_application(connection, account, filter);
  if (!object) return std::unexpected(object.error());
  const bool goes_down = is_descending != window.is_backward;
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto edge = goes_down ? kMax : -kMax;
  const SortKey from = window.from.value_or(SortKey{.numbers = {edge, edge, edge}, .text = {}});
  const auto runtimes = release_set(filter.runtimes);
  const auto names = release_set(filter.names);
  const auto namespaces = release_set(filter.namespaces);
  const auto rows =
      connection.run(statement_at(*object >= 0, order, goes_down),
                     {account, *object, runtimes, names, namespaces, filter.history_id.value_or(-1),
                      filter.started_from, filter.started_to, from.numbers.at(0),
                      from.numbers.at(1), from.numbers.at(2), window.limit});
  if (!rows) return std::unexpected(rows.error());
  std::vector<ReleaseRow> found;
  for (std::size_t row = 0; row < rows->size(); ++row) found.push_back(release_row(*rows, row));
  return found;
}

ReleaseService release_service(const ObjectState& state, JsonView workload) {
  ReleaseService service{.name = state.key.name};
  const auto pod = workload["spec"]["template"]["spec"];
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto container : pod[list].items()) {
      service.images.emplace_back(container["image"].text());
    }
  }
  const auto status = workload["status"];
  const bool is_daemon_set = state.key.kind == "DaemonSet";
  const auto replicas = status[is_daemon_set ? "currentNumberScheduled" : "replicas"];
  const auto available = status[is_daemon_set ? "numberAvailable" : "availableReplicas"];
  if (replicas.is_integer()) service.replicas = replicas.number();
  if (available.is_integer()) service.available_replicas = available.number();
  return service;
}

std::vector<std::string> images_of(std::string_view json) {
  std::vector<std::string> images;
  JsonParser parser;
  const auto list = parser.parse(json, "images");
  if (!list) return images;
  for (const auto image : list->items()) images.emplace_back(image.text());
  return images;
}

std::map<std::string, std::vector<std::string>> images_by_service(
    const std::vector<std::string>& images, const std::vector<ReleaseService>& services) {
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& image : images) {
    const auto name = image_name(image);
    bool is_placed = false;
    for (const auto& service : services) {
      const bool has_it = std::ranges::any_of(service.images, [&](const std::string& own) {
        return image_name(own).full_repository() == name.full_repository();
      });
      if (!has_it) continue;
      found[service.name].push_back(image);
      is_placed = true;
    }
    if (!is_placed) found[name.short_name()].push_back(image);
  }
  return found;
}

void append_release(std::string& out, const ReleaseRow& row, JsonView application,
                    const ReleaseFacts& facts, const ViewContext& context) {
  const auto& release = row.release;
  const auto images = images_of(release.images);
  const bool present = is_current(row);
  ObjectJson at(out);
  at.raw("applicationMetadata", metadata_json(row.application, application["metadata"], context));
  at.number("historyId", release.history_id);
  at.text("syncOperationRevision", release.operation_revision);
  at.number("argoHistoryId", release.history_id);
  at.object("application", [&](ObjectJson& app) {
    write_destination(app, row.application, application);
    write_deployment(app, release, application);
    write_spec_sources(app, application);
    write_annotations(app, "issues", "issue", facts, images, context);
    write_annotations(app, "prs", "pr", facts, images, context);
    write_committers(app, committers_of(facts, images));
    app.text_or_null("revision", release.revision);
    write_builds(app, facts, images);
  });
  // The Application has only the data of its last operation.
  if (present) {
    write_operation_state(at, application);
    write_children_of(at, application, facts);
  } else {
    at.null("operationState");
    at.raw("childApps", "[]");
  }
  const auto after = images_by_service(images, facts.services);
  const auto before =
      images_by_service(images_of(row.images_before.value_or("[]")), facts.services);
  if (row.images_before) {
    write_release_state(at, "fromState", before, false, facts);
  } else {
    at.null("fromState");
  }
  write_release_state(at, "toState", after, present, facts);
  write_transition(at, before, after, present, facts);
  at.flag("current", present);
  at.end();
}

bool matches(const ReleaseFilter& filter, const ReleaseRow& row, JsonView application,
             const ReleaseFacts& facts) {
  const auto images = images_of(row.release.images);
  const auto has_annotation = [&](std::string_view type, const std::vector<std::string>& keys) {
    bool found = false;
    for_each_annotation(facts, images, type, [&](const AnnotationRow& annotation) {
      found = found || keys.empty() || std::ranges::find(keys, annotation.key) != keys.end();
    });
    return found;
  };
  if (filter.has_issues_only && !has_annotation("issue", {})) return false;
  if (!filter.issues.empty() && !has_annotation("issue", filter.issues)) return false;
  if (!filter.pull_requests.empty() && !has_annotation("pr", filter.pull_requests)) return false;
  if (!filter.committers.empty()) {
    const auto committers = committers_of(facts, images);
    const bool found = std::ranges::any_of(
        filter.committers, [&](const std::string& name) { return committers.contains(name); });
    if (!found) return false;
  }
  if (filter.group.empty()) return true;
  const auto groups = application_groups(application);
  return std::ranges::find(groups, filter.group) != groups.end();
}

Result<std::string> release_slice(Connection& connection, std::int64_t account,
                                  const ReleaseList& list, const ViewContext& context) {
  ReleaseReader reader(connection, account, list);
  std::vector<PageItem> items;
  PageWindow round = list.window;
  const bool is_checked = list.filter.needs_facts() || !list.filter.group.empty() || list.accepts;
  const auto wanted = list.window.limit + 1;
  std::optional<SortKey> read_to;
  std::size_t read = 0;
  while (items.size() < wanted && !read_to) {
    round.limit = is_checked ? std::min(kReleaseRound, list.max_read - read) : wanted;
    const auto rows =
        list_releases(connection, account, list.filter, list.order, list.is_descending, round);
    if (!rows) return std::unexpected(rows.error());
    for (const auto& row : *rows) {
      if (items.size() == wanted) break;
      const auto facts = reader.facts_of(row);
      if (!facts) return std::unexpected(facts.error());
      if (list.accepts && !list.accepts(row.application, reader.application())) continue;
      if (is_checked && !matches(list.filter, row, reader.application(), *facts)) continue;
      auto& item = items.emplace_back();
      item.key = sort_key_of(row, list.order);
      append_release(item.node, row, reader.application(), *facts, context);
    }
    if (rows->size() < round.limit) break;
    round.from = sort_key_of(rows->back(), list.order);
    read += rows->size();
    if (items.size() < wanted && read >= list.max_read) read_to = round.from;
  }
  return slice_json(list.window, std::move(items), read_to);
}

std::span<const Statement> release_statements() {
  return kReleaseStatements;
}

}  // namespace gitops::control_plane_server
