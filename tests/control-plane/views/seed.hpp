#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/event.hpp"
#include "control-plane/storage/event_store.hpp"
#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/object_query.hpp"

// Events of the reporters and what is stored of them, for tests of pages.
namespace gitops::control_plane_server {

inline constexpr Micros kSeedTime = 1'772'615'520'000'000;  // 2026-03-04T09:12:00Z

// The body of an event of mode `app`: an Application, or with `manager` a resource of one.
inline std::string app_event(const nlohmann::json& object,
                             nlohmann::json source = nlohmann::json::object(),
                             const nlohmann::json& errors = nlohmann::json::array()) {
  const nlohmann::json defaults{{"desiredManifest", ""},  {"actualManifest", object.dump()},
                                {"gitManifest", ""},      {"revision", ""},
                                {"syncStatus", "Synced"}, {"healthStatus", "Healthy"},
                                {"historyId", 0}};
  for (const auto& [key, value] : defaults.items()) {
    if (!source.contains(key)) source[key] = value;
  }
  nlohmann::json data{{"object", base64_encode(object.dump())}, {"source", source}};
  if (!errors.empty()) data["errors"] = errors;
  return nlohmann::json{{"data", data}}.dump();
}

// The source of a resource of this Application.
inline nlohmann::json managed_by(const std::string& name) {
  return {{"appName", name}, {"appNamespace", "argocd"}, {"appUID", "uid-" + name}};
}

// The body of an event of mode `resource`.
inline std::string resource_event(const nlohmann::json& object, bool is_deleted = false) {
  nlohmann::json data{{"object", object.dump()}};
  if (is_deleted) data["deleted"] = true;
  return nlohmann::json{{"data", data}}.dump();
}

// An object with these parts of its metadata.
inline nlohmann::json object_of(const std::string& api_version, const std::string& kind,
                                const std::string& object_namespace, const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name},
            {"namespace", object_namespace},
            {"uid", "uid-" + name},
            {"creationTimestamp", "2026-03-04T09:00:00Z"}}}};
}

inline nlohmann::json application_of(const std::string& name) {
  auto application = object_of("argoproj.io/v1alpha1", "Application", "argocd", name);
  application["spec"] = {{"destination", {{"server", "https://10.0.0.1"}, {"namespace", name}}},
                         {"source",
                          {{"repoURL", "https://git.example/acme/apps.git"},
                           {"path", "apps/" + name},
                           {"targetRevision", "main"}}}};
  application["status"] = {{"sync", {{"status", "Synced"}, {"revision", std::string(40, 'c')}}},
                           {"health", {{"status", "Healthy"}}}};
  return application;
}

// Reads bodies as the intake does.
inline Event event_of_body(const std::string& body, std::int64_t sequence,
                           const std::string& runtime = "prod") {
  JsonParser parser(EventLimits().max_depth);
  auto event = read_event(parser, body,
                          {.event_id = "e" + std::to_string(sequence),
                           .sequence = sequence,
                           .runtime = runtime,
                           .arrived_at = kSeedTime + sequence});
  if (!event) throw std::runtime_error(event.error().message);
  return std::move(*event);
}

// Stores events, each as a batch of its own.
class Seeder {
 public:
  // Each has an instance of its own in the outbox, as each start of the program.
  explicit Seeder(store::Engine engine)
      : events_(make_event_store(engine, hex_encode(random_bytes(6)))) {}

  // Returns the object's id. The connection has no transaction.
  std::int64_t store(store::Connection& connection, std::int64_t account, const std::string& body,
                     const std::string& runtime = "prod") {
    Incoming incoming{
        .account = account, .reporter = {}, .event = event_of_body(body, ++sequence_, runtime)};
    incoming.reporter =
        incoming.event.state.key.origin == Origin::application ? "application" : "resource";
    const auto outcome = events_->store(connection, std::span(&incoming, 1));
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return outcome->items.at(0).object;
  }

 private:
  std::unique_ptr<EventStore> events_;
  std::int64_t sequence_ = 0;
};

// One object as a view sees it.
struct SeenObject {
  explicit SeenObject(const std::string& body) : event(event_of_body(body, 7)), texts(event.body) {
    parsed.read(texts);
  }
  Event event;
  std::optional<ObjectBody> texts;
  ParsedBody parsed;
};

// What a function appends.
template <class Append>
nlohmann::json appended(const Append& append) {
  std::string out;
  append(out);
  return nlohmann::json::parse(out);
}

}  // namespace gitops::control_plane_server
