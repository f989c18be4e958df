#include "control-plane/views/promotion_view.hpp"

#include <algorithm>
#include <utility>

#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

std::optional<std::string_view> label_of(const Labels& labels, std::string_view key) {
  const auto found = std::ranges::find(
      labels, key, [](const auto& label) { return std::string_view(label.first); });
  if (found == labels.end()) return std::nullopt;
  return found->second;
}

bool expression_fits(JsonView expression, const Labels& labels) {
  const auto label = label_of(labels, expression["key"].text());
  const auto name = expression["operator"].text();
  if (name == "Exists") return label.has_value();
  if (name == "DoesNotExist") return !label.has_value();
  bool is_listed = false;
  for (const auto value : expression["values"].items()) {
    is_listed = is_listed || (label && value.text() == *label);
  }
  if (name == "In") return is_listed;
  return name == "NotIn" && !is_listed;
}

std::string template_json(JsonView spec) {
  return object_json([&](ObjectJson& out) {
    const auto version = spec["versionSource"];
    if (version["file"].text().empty() || version["jsonPath"].text().empty()) {
      out.null("versionSource");
    } else {
      out.object("versionSource", [&](ObjectJson& at) {
        at.text("file", version["file"].text());
        at.text("jsonPath", version["jsonPath"].text());
      });
    }
    // Everything is promoted when the member is absent.
    if (!spec["promotion"].is_object()) {
      out.null("promotion");
      return;
    }
    out.array("promotion", [&](ArrayJson& rules) {
      for (const auto& [glob, rule] : spec["promotion"].members()) {
        rules.object([&](ObjectJson& at) {
          at.text("glob", glob);
          at.array("jsonPaths", [&](ArrayJson& paths) {
            for (const auto path : rule["jsonPaths"].items()) paths.text(path.text());
          });
        });
      }
    });
  });
}

}  // namespace

bool selector_fits(JsonView selector, const Labels& labels) {
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    if (label_of(labels, key) != value.text()) return false;
  }
  return std::ranges::all_of(selector["matchExpressions"].items(), [&](JsonView expression) {
    return expression_fits(expression, labels);
  });
}

std::optional<std::string> promotion_template_json(const std::vector<TemplateText>& templates,
                                                   const Labels& labels) {
  std::optional<std::string> chosen;
  std::pair<std::int64_t, std::string> best;
  JsonParser parser;
  for (const auto& [name, text] : templates) {
    const auto object = parser.parse(text, "template");
    if (!object) continue;
    const auto spec = (*object)["spec"];
    if (!spec.is_object() || !selector_fits(spec["applicationSourceSelector"], labels)) continue;
    // Higher priorities come first, then names in order.
    std::pair<std::int64_t, std::string> rank{-spec["priority"].number(), name};
    if (chosen && !(rank < best)) continue;
    best = std::move(rank);
    chosen = template_json(spec);
  }
  return chosen;
}

Result<std::optional<std::string>> find_promotion_template(store::Connection& connection,
                                                           std::int64_t account,
                                                           const Labels& labels) {
  auto rows =
      list_objects(connection, account, {.kind = "PromotionTemplate", .groups = {"codefresh.io"}},
                   {}, BodyUse::read);
  if (!rows) return std::unexpected(rows.error());
  std::vector<TemplateText> templates;
  for (auto& row : *rows) {
    if (!row.body) continue;
    templates.push_back({.name = row.state.key.name, .object = std::move(row.body->live)});
  }
  return promotion_template_json(templates, labels);
}

Result<std::optional<std::string>> find_promotion_template(store::Connection& connection,
                                                           std::int64_t account,
                                                           const ObjectName& application) {
  const auto row = find_object(connection, account, application, BodyUse::read);
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::optional<std::string>();
  ParsedBody parsed;
  parsed.read((*row)->body);
  Labels labels;
  for (const auto& [key, value] : parsed.live()["metadata"]["labels"].members()) {
    labels.emplace_back(key, value.text());
  }
  return find_promotion_template(connection, account, labels);
}

}  // namespace gitops::control_plane_server
