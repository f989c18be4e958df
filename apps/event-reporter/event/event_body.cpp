#include "event-reporter/event/event_body.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/yaml_text.hpp"

namespace gitops::reporter {
namespace {

std::string as_yaml(std::string_view manifest) {
  auto yaml = json_to_yaml(manifest);
  return yaml ? std::move(*yaml) : std::string();
}

using Body = const EventBody&;
enum class Form { text, json };

// The value of a field: a part of the body, or a text that was made for the field.
class Value {
 public:
  Value() = default;  // absent: the field is left out
  explicit Value(std::string_view part) : text_(part) {}
  explicit Value(std::string&& made) : text_(std::move(made)) {}
  explicit Value(const std::string&&) = delete;  // a temporary may not be borrowed
  explicit Value(const char* literal) : text_(std::string_view(literal)) {}

  [[nodiscard]] std::optional<std::string_view> text() const {
    if (const auto* part = std::get_if<std::string_view>(&text_)) return *part;
    if (const auto* made = std::get_if<std::string>(&text_)) return *made;
    return std::nullopt;
  }

 private:
  std::variant<std::monostate, std::string_view, std::string> text_;
};

// Defines whether a change of the field makes the event due, and the field's position in the
// digest. Positions never change, because ledgers hold digests; a new field takes the next one.
struct Counts {
  constexpr Counts(DigestScope s, int p, std::string_view a = {}) : scope(s), place(p), absent(a) {}
  DigestScope scope;
  int place;                // from 1 on; 0: not in a digest
  std::string_view absent;  // value in the digest of an event without the field
};
constexpr Counts kNever(DigestScope::resource, 0);
constexpr Counts counts(int place, std::string_view absent = {}) {
  return {DigestScope::resource, place, absent};
}

struct SourceField {
  std::string_view name;
  Counts counts;
  Value (*value)(Body);
  Form form = Form::text;
};

Value commit_date(Body body) {
  if (!body.app.commit || !body.app.commit->date) return {};
  return Value(format_rfc3339(*body.app.commit->date));
}

Value started_at(Body body) {
  return body.app.started_at.empty() ? Value(format_rfc3339(body.now)) : Value(body.app.started_at);
}

Value finished_at(Body body) {
  const auto& state = body.state;
  const bool done = body.app.managed && state.sync_status == "Synced" && state.health &&
                    state.health->status == "Healthy";
  if (done) return started_at(body);
  return body.app.finished_at.empty() ? Value() : Value(body.app.finished_at);
}

// The members of "source" in the order of the body. A new field is one more row.
constexpr auto kSource = std::to_array<SourceField>({
    {"desiredManifest", counts(7), [](Body b) { return Value(b.state.desired); }},
    {"actualManifest", counts(8), [](Body b) { return Value(b.state.actual); }},
    {"gitManifest", kNever,
     [](Body b) {
       return b.state.git_text.empty() ? Value(as_yaml(b.state.desired)) : Value(b.state.git_text);
     }},
    {"repoURL", counts(3), [](Body b) { return Value(b.app.repo_url); }},
    {"path", kNever, [](Body b) { return Value(b.state.path); }},
    {"revision", Counts(DigestScope::resource_and_revision, 9),
     [](Body b) { return Value(b.app.revision); }},
    {"commitMessage", kNever,
     [](Body b) { return b.app.commit ? Value(b.app.commit->message) : Value(""); }},
    {"commitAuthor", kNever,
     [](Body b) { return b.app.commit ? Value(b.app.commit->author) : Value(""); }},
    {"commitDate", kNever, &commit_date},
    {"appName", kNever, [](Body b) { return Value(b.app.name); }},
    {"appLabels", kNever, [](Body b) { return Value(b.app.labels); }, Form::json},
    {"syncStatus", counts(4), [](Body b) { return Value(b.state.sync_status); }},
    {"syncStartedAt", kNever, &started_at},
    {"syncFinishedAt", kNever, &finished_at},
    {"healthStatus", counts(5, "-"),
     [](Body b) { return b.state.health ? Value(b.state.health->status) : Value(); }},
    {"healthMessage", counts(6),
     [](Body b) { return b.state.health ? Value(b.state.health->message) : Value(); }},
    {"cluster", counts(2), [](Body b) { return Value(b.app.cluster); }},
    {"historyId", kNever, [](Body b) { return Value(std::to_string(b.app.history_id)); },
     Form::json},
    {"operationSyncRevision", kNever, [](Body b) { return Value(b.app.operation_revision); }},
    {"appUID", Counts(DigestScope::application, 1), [](Body b) { return Value(b.app.uid); }},
    {"appNamespace", kNever, [](Body b) { return Value(b.app.ns); }},
    {"appInstanceLabelKey", kNever, [](Body b) { return Value(b.settings.instance_label_key); }},
    {"trackingMethod", kNever, [](Body b) { return Value(b.settings.method); }},
});

void write_source(std::string& out, Body body) {
  ObjectWriter source(out);
  for (const auto& field : kSource) {
    const auto value = field.value(body);
    const auto text = value.text();
    if (!text) continue;
    if (field.form == Form::text) {
      source.text(field.name, *text);
    } else {
      source.raw(field.name, *text);
    }
  }
  source.end();
}

std::string reduced_manifest(std::string_view manifest) {
  if (manifest.empty()) return {};
  const auto metadata = [](std::string_view text) {
    return keep_members(text, {{"name", {}},
                               {"namespace", {}},
                               {"uid", {}},
                               {"resourceVersion", {}},
                               {"deletionTimestamp", {}}});
  };
  const auto operation = [](std::string_view text) {
    return keep_members(text, {{"phase", {}}, {"startedAt", {}}, {"finishedAt", {}}});
  };
  const auto sync = [](std::string_view text) {
    return keep_members(text, {{"status", {}}, {"revision", {}}, {"revisions", {}}});
  };
  const auto status = [&](std::string_view text) {
    return keep_members(text, {{"health", {}}, {"sync", sync}, {"operationState", operation}});
  };
  return keep_members(
      manifest, {{"apiVersion", {}}, {"kind", {}}, {"metadata", metadata}, {"status", status}});
}

}  // namespace

std::string reduced_event(std::string_view body) {
  JsonParser parser;
  const auto event = parser.parse_object(body, "event");
  if (!event) return {};
  const auto data = (*event)["data"];
  const auto object = base64_decode(data["object"].text());
  if (!object) return {};
  const auto reduced_text = [](JsonView text) {
    return json_string(reduced_manifest(text.text()));
  };
  auto out = edit_present_member(body, "data", [&](std::string_view payload) {
    auto smaller = edit_present_member(payload, "object", [&](std::string_view) {
      return json_string(base64_encode(reduced_manifest(*object)));
    });
    return edit_present_member(smaller, "source", [&](std::string_view source) {
      std::string kept(source);
      for (const auto* name : {"desiredManifest", "actualManifest"}) {
        kept = edit_present_member(
            kept, name, [&](std::string_view) { return reduced_text(data["source"][name]); });
      }
      return edit_present_member(kept, "gitManifest",
                                 [](std::string_view) { return std::string("\"\""); });
    });
  });
  return out.size() < body.size() ? out : std::string{};
}

std::string write_event(const EventBody& body) {
  const auto& state = body.state;
  std::string out;
  out.reserve(2048 + 2 * state.object.size() + 2 * state.actual.size() + 3 * state.desired.size());
  out += "{\"data\":";
  ObjectWriter payload(out);
  payload.text("timestamp", format_rfc3339_millis(body.now));
  // Base64 needs no escapes.
  payload.begin("object").append("\"").append(base64_encode(state.object)).append("\"");
  write_source(payload.begin("source"), body);
  if (!body.errors.empty()) body.errors.write(payload.begin("errors"));
  payload.raw("appVersions", "{}");
  payload.end();
  out += '}';
  return out;
}

Digest digest_event(const EventBody& body, DigestScope scope,
                    std::initializer_list<std::string_view> head) {
  static const auto ordered = [] {
    auto fields = kSource;
    std::ranges::sort(fields, {}, [](const SourceField& field) { return field.counts.place; });
    return fields;
  }();
  Hasher hasher;
  for (const auto text : head) hasher.add(text);
  for (const auto& field : ordered) {
    if (field.counts.place == 0 || field.counts.scope > scope) continue;
    const auto value = field.value(body);
    hasher.add(value.text().value_or(field.counts.absent));
  }
  body.errors.add_to(hasher);
  return hasher.finish();
}

}  // namespace gitops::reporter
